/** The object store, and what is copied from and to it. */

/**
 * An object store. With `prefix`, all keys are under it. For S3, options that are left out come from the usual `AWS_*`
 * environment variables; an endpoint without TLS is used only if its address begins with `http://`.
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
      /**
       * Creates the bucket if it is missing.
       *
       * @default false
       */
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
      /** A bucket of S3 or of a compatible service. */
      type: 's3';
      /** Its name. */
      bucket: string;
      /** By default, `AWS_REGION` or `AWS_DEFAULT_REGION`, else `us-east-1`. */
      region?: string;
      /** Address of a compatible service: `https://storage.example.com`. By default, `AWS_ENDPOINT_URL`. */
      endpoint?: string;
      /** By default, `AWS_ACCESS_KEY_ID`. */
      accessKeyId?: string;
      /** By default, `AWS_SECRET_ACCESS_KEY`. */
      secretAccessKey?: string;
      /** By default, `AWS_SESSION_TOKEN`. */
      sessionToken?: string;
      /** Before every key. */
      prefix?: string;
    }
  | {
      /** An existing folder of the host. */
      type: 'folder';
      /** Path of the folder. */
      path: string;
      /** Before every key. */
      prefix?: string;
    }
  | {
      /** The manager's own memory: for tests. */
      type: 'memory';
    };

/** A file that `sandbox.stage()` wrote. */
export interface StageResult {
  /** Absolute, in the sandbox. */
  path: string;
  /** Of the file. */
  sizeBytes: number;
  /** Of its content, in hexadecimal. */
  sha256: string;
}

/** An object that `sandbox.publish()` wrote. */
export interface PublishResult {
  /** Under which it is in the store. */
  key: string;
  /** Of the object. */
  sizeBytes: number;
  /** Of its content, in hexadecimal. */
  sha256: string;
}

/** How to copy an object into a sandbox. */
export interface StageOptions {
  /** Expected SHA-256, in hexadecimal. If the object has another, no file appears. */
  sha256?: string;
  /** Permission bits. By default, those of the file it replaces, or `0o644`. */
  mode?: number;
  /**
   * False refuses to replace a file, with `FILE_EXISTS`.
   *
   * @default true
   */
  overwrite?: boolean;
  /** Its owner. By default, the command user. */
  user?: string;
  /** A larger object rejects with `LIMIT_EXCEEDED`. */
  maxBytes?: number;
  /** Aborts the call; rejects with `signal.reason`. */
  signal?: AbortSignal;
}

/** How to copy a file of a sandbox into the store. */
export interface PublishOptions {
  /** A larger file rejects with `LIMIT_EXCEEDED`. */
  maxBytes?: number;
  /** Aborts the call; rejects with `signal.reason`. */
  signal?: AbortSignal;
}
