// The few calls of the engine's HTTP API that these scripts need, over a unix socket or TCP, without the
// docker CLI.

import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import os from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

const ANSWER_MS = 10_000;
const SILENT_REGISTRY_MS = 20_000;

export class EngineApi {
  #request;
  #target;

  /** @param {string} host as in DOCKER_HOST: `unix:///path` or `tcp://host:port` */
  constructor(host) {
    const url = new URL(host);
    if (url.protocol === 'unix:') {
      this.#request = http.request;
      this.#target = { socketPath: decodeURIComponent(url.pathname) };
    } else if (url.protocol === 'tcp:' || url.protocol === 'http:') {
      const tls = tlsFiles();
      this.#request = tls ? https.request : http.request;
      this.#target = { host: url.hostname, port: url.port || (tls ? 2376 : 2375), ...tls };
    } else {
      throw new Error(`an engine at "${host}" is not one these scripts can talk to: use unix:// or tcp://`);
    }
  }

  /** Resolves when the engine answers; rejects with the reason when it does not. */
  async ping(timeoutMs) {
    const response = await this.#call('GET', '/_ping', { timeoutMs });
    response.resume();
    if (response.statusCode !== 200) throw new Error(`it answered /_ping with ${response.statusCode}`);
  }

  /** What the engine says of an image; `undefined` when it has none of that name. */
  async image(name) {
    const response = await this.#call('GET', `/images/${encodeURIComponent(name)}/json`);
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += chunk;
    if (response.statusCode === 200) return JSON.parse(text);
    if (response.statusCode === 404) return undefined;
    throw new Error(`the engine answered ${response.statusCode} when asked for image "${name}"`);
  }

  /** Pulls an image; a registry that is silent for a while counts as none. */
  async pull(name) {
    const [fromImage, tag] = splitName(name);
    const query = new URLSearchParams({ fromImage, tag });
    const response = await this.#call('POST', `/images/create?${query}`, { timeoutMs: SILENT_REGISTRY_MS });
    await expectSuccess(response);
  }

  /**
   * Makes an image of one layer from a tar stream. It is tagged only after the whole stream went in.
   *
   * @param {Readable | Iterable<Uint8Array> | AsyncIterable<Uint8Array>} tar
   * @param {string[]} changes Dockerfile lines, such as `CMD ["sh"]`
   */
  async importImage(name, tar, changes) {
    const [repo, tag] = splitName(name);
    const query = new URLSearchParams({ fromSrc: '-', repo, tag });
    for (const change of changes) query.append('changes', change);
    const response = await this.#call('POST', `/images/create?${query}`, { body: tar, timeoutMs: 0 });
    await expectSuccess(response);
  }

  /** The whole root of an image as a tar stream, by way of a container that is never started. */
  async exportRoot(name) {
    const body = [Buffer.from(JSON.stringify({ Image: name, Cmd: ['none'] }))];
    const made = await this.#call('POST', '/containers/create', {
      body,
      headers: { 'content-type': 'application/json' },
    });
    const { Id } = JSON.parse(await textOf(made));
    if (!Id) throw new Error(`no container could be made of "${name}"`);
    const remove = async () => (await this.#call('DELETE', `/containers/${Id}?force=1`)).resume();
    const stream = await this.#call('GET', `/containers/${Id}/export`, { timeoutMs: 0 });
    stream.once('close', () => void remove());
    return stream;
  }

  #call(method, url, { body, headers = {}, timeoutMs = ANSWER_MS } = {}) {
    return new Promise((resolve, reject) => {
      const request = this.#request({ ...this.#target, method, path: url, headers, agent: false, timeout: timeoutMs });
      request.once('response', resolve);
      request.on('error', reject);
      request.on('timeout', () => request.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)));
      if (body) pipeline(Readable.from(body), request).catch(reject);
      else request.end();
    });
  }
}

async function textOf(response) {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk;
  return text;
}

/** The engine reports progress and failure alike as JSON lines, also after a status of 200. */
async function expectSuccess(response) {
  const text = await textOf(response);
  for (const line of text.split('\n').filter((line) => line.trim())) {
    const { error, message } = JSON.parse(line);
    if (error ?? message) throw new Error(error ?? message);
  }
  if (response.statusCode >= 400) throw new Error(`the engine answered ${response.statusCode}`);
}

function splitName(name) {
  const colon = name.lastIndexOf(':');
  return [name.slice(0, colon), name.slice(colon + 1)];
}

function tlsFiles() {
  if (!process.env.DOCKER_TLS_VERIFY) return undefined;
  const folder = process.env.DOCKER_CERT_PATH || path.join(os.homedir(), '.docker');
  const read = (name) => readFileSync(path.join(folder, name));
  return { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem') };
}
