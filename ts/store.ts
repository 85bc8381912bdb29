/** The object store, and what goes from and to it. */

/**
 * An object store. With `prefix`, all keys are under it. For S3, what is left out comes from the usual `AWS_*` environment
 * variables; an endpoint without TLS is used only when it is named as `http://`.
 *
 * @example
 * ```ts
 * const manager = new SandboxManager({
 *   store: { type: 'nats', servers: 'nats://localhost:4222', bucket: 'files', create: true },
 * });
 * ```
 */
export type ObjectStoreOptions =
  | {
      /** A bucket of NATS JetStream's object store. */
      type: 'nats';
      /** One, or several of a cluster: `nats://localhost:4222`. */
      servers: string | string[];
      /** Its name. */
      bucket: string;
      /** Make the bucket when it is missing. */
      create?: boolean;
      /** With `password`; or `token`, or `credentialsFile`, or none. */
      user?: string;
      /** Of `user`. */
      password?: string;
      /** Instead of a user. */
      token?: string;
      /** Path of a `.creds` file. */
      credentialsFile?: string;
      /** Before every key. */
      prefix?: string;
    }
  | {
      /** A bucket of S3, or of what speaks as it does. */
      type: 's3';
      /** Its name. */
      bucket: string;
      /** `AWS_REGION`, else `us-east-1`, unless told. */
      region?: string;
      /** Of what is not Amazon's own: `https://storage.example.com`. `AWS_ENDPOINT_URL` unless told. */
      endpoint?: string;
      /** `AWS_ACCESS_KEY_ID` unless told. */
      accessKeyId?: string;
      /** `AWS_SECRET_ACCESS_KEY` unless told. */
      secretAccessKey?: string;
      /** `AWS_SESSION_TOKEN` unless told. */
      sessionToken?: string;
      /** Before every key. */
      prefix?: string;
    }
  | {
      /** A folder of the host, which must be there. */
      type: 'folder';
      /** Where it is. */
      path: string;
      /** Before every key. */
      prefix?: string;
    }
  | {
      /** The manager's own memory: for tests. */
      type: 'memory';
    };

/** How to bring an object into a sandbox. */
export interface StageOptions {
  /** What its SHA-256 must be, in hexadecimal. Where it is not, no file appears. */
  sha256?: string;
  /** Permission bits; those of the file it replaces, or 0644, unless told. */
  mode?: number;
  /** False refuses to replace a file, with `FILE_EXISTS`. */
  overwrite?: boolean;
  /** Whom it belongs to; whom commands run as unless told. */
  user?: string;
  /** A larger object rejects with `LIMIT_EXCEEDED`. */
  maxBytes?: number;
  /** Gives it up: the call rejects with the signal's own reason. */
  signal?: AbortSignal;
}

/** How to store a file of a sandbox. */
export interface PublishOptions {
  /** A larger file rejects with `LIMIT_EXCEEDED`. */
  maxBytes?: number;
  /** Gives it up: the call rejects with the signal's own reason. */
  signal?: AbortSignal;
}
