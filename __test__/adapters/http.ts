/** A model behind HTTP, for SDKs that speak it: `fetch` itself, which answers as a function says. */

export function answering<Body>(respond: (body: Body, step: number) => object) {
  const requests: Body[] = [];
  const fetch = async (_url: unknown, init?: { body?: unknown }): Promise<Response> => {
    const body = JSON.parse(String(init?.body)) as Body;
    requests.push(body);
    return Response.json(respond(body, requests.length));
  };
  return { fetch, requests };
}
