/** The user of this program. */
import { userInfo } from 'node:os';

/** Its name; if the system has none, as in many containers, that of the environment, or its uid. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return process.env.USER || process.env.LOGNAME || String(process.getuid?.() ?? 'user');
  }
}
