/**
 * The part of S3 that staging uses, in memory, on loopback. It refuses what S3 refuses: a request whose version 4 signature
 * does not fit it, a body that is not what was signed, a checksum that is missing or wrong, a part that is too small.
 */
import { createHash, createHmac, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ObjectStoreOptions } from 'cofferdam';

const MIN_PART = 5 * 1024 * 1024;

type S3Options = Extract<ObjectStoreOptions, { type: 's3' }>;

class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail = '',
  ) {
    super(detail);
  }
}

export class S3Server {
  readonly objects = new Map<string, Buffer>();
  /** Uploads in parts that were begun and not ended, by their id. */
  readonly uploads = new Map<string, { key: string; parts: Map<number, Buffer> }>();
  /** How many uploads in parts there were. */
  begun = 0;
  /** Called before each request is answered. */
  onRequest: (method: string, url: URL) => Promise<void> | void = () => {};
  readonly #server = createServer((request, response) => this.#answer(request, response));
  readonly #keys = { accessKeyId: 'AKIDEXAMPLE0123', secretAccessKey: 'wJalrXUtnFEMIbPxRfiCYEXAMPLE' };

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  get options(): S3Options {
    const { port } = this.#server.address() as AddressInfo;
    const endpoint = `http://127.0.0.1:${port}`;
    return { type: 's3', bucket: 'bucket', region: 'eu-central-1', endpoint, ...this.#keys };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const url = new URL(request.url ?? '/', 'http://server');
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = Buffer.concat(chunks);
      this.#checkSignature(request, url, body);
      await this.onRequest(request.method ?? '', url);
      this.#serve(request, response, url, body);
    } catch (error) {
      if (response.destroyed) return;
      const { status, code, message } =
        error instanceof Refusal ? error : { status: 500, code: 'InternalError', message: String(error) };
      response.writeHead(status, { 'content-type': 'application/xml' });
      response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`);
    }
  }

  #checkSignature({ method, headers, url: target }: IncomingMessage, url: URL, body: Buffer): void {
    const [, id, scope, signed, signature] =
      /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\S+), SignedHeaders=([^,]+), Signature=(\w+)$/.exec(
        headers.authorization ?? '',
      ) ?? [];
    if (!id || !scope || !signed) throw new Refusal(403, 'AccessDenied', 'the request is not signed');
    if (id !== this.#keys.accessKeyId) throw new Refusal(403, 'InvalidAccessKeyId', `no key ${id}`);
    const payload = headers['x-amz-content-sha256'];
    const hash = createHash('sha256').update(body).digest('hex');
    if (payload !== hash) throw new Refusal(400, 'XAmzContentSHA256Mismatch', `${payload} is not ${hash}`);
    const query = [...url.searchParams].map((pair) => pair.map(encodeURIComponent).join('=')).sort();
    const lines = signed.split(';').map((name) => `${name}:${headers[name]}\n`);
    const path = (target ?? '').split('?')[0];
    const canonical = [method, path, query.join('&'), lines.join(''), signed, payload].join('\n');
    const digest = createHash('sha256').update(canonical).digest('hex');
    const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();
    const key = scope.split('/').reduce<string | Buffer>(hmac, `AWS4${this.#keys.secretAccessKey}`);
    const expected = hmac(key, ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, digest].join('\n')).toString('hex');
    if (signature !== expected) {
      throw new Refusal(403, 'SignatureDoesNotMatch', `AWSAccessKeyId ${id}, StringToSign ${canonical}`);
    }
  }

  #serve({ method, headers }: IncomingMessage, response: ServerResponse, url: URL, body: Buffer): void {
    const [, bucket, ...rest] = url.pathname.split('/').map(decodeURIComponent);
    const key = rest.join('/');
    if (bucket !== 'bucket') throw new Refusal(404, 'NoSuchBucket');
    const id = url.searchParams.get('uploadId');
    const upload = id === null ? undefined : this.uploads.get(id);
    if (id !== null && upload?.key !== key) throw new Refusal(404, 'NoSuchUpload');
    const reply = (status: number, fields: Record<string, string>, content: string | Buffer = '') =>
      response.writeHead(status, { 'content-length': `${Buffer.byteLength(content)}`, ...fields }).end(content);
    const etag = (data: Buffer) => `"${createHash('md5').update(data).digest('hex')}"`;

    if (method === 'POST' && url.searchParams.has('uploads')) {
      const uploadId = randomUUID();
      this.begun += 1;
      this.uploads.set(uploadId, { key, parts: new Map() });
      const ids = `<Bucket>bucket</Bucket><Key>k</Key><UploadId>${uploadId}</UploadId>`;
      reply(200, {}, `<InitiateMultipartUploadResult>${ids}</InitiateMultipartUploadResult>`);
    } else if (method === 'PUT') {
      const sum = createHash('sha256').update(body).digest('base64');
      if (headers['x-amz-checksum-sha256'] !== sum) throw new Refusal(400, 'BadDigest', 'no good checksum');
      if (upload) upload.parts.set(Number(url.searchParams.get('partNumber')), body);
      else this.objects.set(key, body);
      reply(200, { etag: etag(body), 'x-amz-checksum-sha256': sum });
    } else if (method === 'POST' && upload && id) {
      const parts = [...upload.parts].sort(([a], [b]) => a - b).map(([, part]) => part);
      if (parts.slice(0, -1).some(({ length }) => length < MIN_PART)) throw new Refusal(400, 'EntityTooSmall');
      this.objects.set(key, Buffer.concat(parts));
      this.uploads.delete(id);
      reply(200, {}, `<CompleteMultipartUploadResult><ETag>"whole"</ETag></CompleteMultipartUploadResult>`);
    } else if (method === 'DELETE' && id) {
      this.uploads.delete(id);
      reply(204, {});
    } else if (method === 'GET') {
      const data = this.objects.get(key);
      if (!data) throw new Refusal(404, 'NoSuchKey');
      const from = Number(/^bytes=(\d+)-/.exec(headers.range ?? '')?.[1] ?? 0);
      const range = { 'content-range': `bytes ${from}-${data.length - 1}/${data.length}` };
      const fields = { etag: etag(data), 'last-modified': new Date(0).toUTCString() };
      reply(headers.range ? 206 : 200, { ...fields, ...(headers.range ? range : {}) }, data.subarray(from));
    } else {
      throw new Refusal(405, 'MethodNotAllowed');
    }
  }
}
