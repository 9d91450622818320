// The gateway's endpoints, typed by its own OpenAPI document.
import createClient from 'openapi-fetch';
import { session } from '$lib/session.svelte';
import type { paths } from './openapi';
import { ProblemError, type Problem } from './problem';

export const api = createClient<paths>({ baseUrl: '/' });

api.use({
  onRequest({ request }) {
    for (const [name, value] of Object.entries(session.headers())) request.headers.set(name, value);
    return request;
  },
});

/** What an endpoint answers: `const { agents } = await asked(api.GET('/v1/agents'))`. Fails with a `ProblemError`. */
export async function asked<T>(request: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<NonNullable<T>> {
  const { data, error, response } = await request;
  if (data !== undefined && data !== null) return data;
  const problem = new ProblemError(response.status, error as Problem | undefined);
  session.heed(problem);
  throw problem;
}

/** Of an endpoint that answers with nothing. Fails with a `ProblemError`. */
export async function done(request: Promise<{ error?: unknown; response: Response }>): Promise<void> {
  const { error, response } = await request;
  if (response.ok) return;
  await asked(Promise.resolve({ error, response }));
}
