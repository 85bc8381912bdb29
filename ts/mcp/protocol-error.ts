/**
 * The answer to an invalid request. The SDK takes code, message and data from it. The SDK's own class would put the code into
 * the message, where the client's class puts it again.
 */
export class ProtocolError extends Error {
  readonly code: number;
  readonly data: Record<string, unknown> | undefined;

  constructor(code: number, message: string, data?: Record<string, unknown>) {
    super(message);
    this.code = code;
    this.data = data;
  }
}
