/** Who is at the keyboard. */
import { userInfo } from 'node:os';

/** The name of this user; where the system has none for it (in many containers), what the environment says, or its number. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return process.env.USER || process.env.LOGNAME || String(process.getuid?.() ?? 'user');
  }
}
