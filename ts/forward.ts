/** Ports of a sandbox on the host. */

/** How to forward a port. */
export interface ForwardOptions {
  /** The port on the host. By default, a free one. */
  hostPort?: number;
}

/** A port of the sandbox on the host's loopback address. */
export interface PortForward extends AsyncDisposable {
  /** The port on the host. */
  readonly hostPort: number;
  /** `http://127.0.0.1:<hostPort>` */
  readonly url: string;
  /** Stops forwarding and closes all connections. */
  close(): Promise<void>;
}
