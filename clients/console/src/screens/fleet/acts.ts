// What can be done to read models and to the epoch.
import { api, asked } from '$lib/api/client';

export type Act = 'rebuild' | 'verify' | 'swap' | 'drop' | 'hold' | 'release' | 'promote' | 'retry';

export async function digests(projection: string) {
  return asked(api.GET('/v1/projections/{projection}/digests', { params: { path: { projection } } }));
}

export type Digests = Awaited<ReturnType<typeof digests>>;

/** `generation` is the number of what is meant: of a generation, or of a dead letter. */
export async function act(what: Exclude<Act, 'verify'>, projection: string, generation: number): Promise<void> {
  const params = { path: { projection } };
  if (what === 'rebuild') await asked(api.POST('/v1/projections/{projection}/rebuild', { params }));
  else if (what === 'swap') await asked(api.POST('/v1/projections/{projection}/swap', { params }));
  else if (what === 'hold') await asked(api.POST('/v1/fleet/hold'));
  else if (what === 'release') await asked(api.POST('/v1/fleet/release'));
  else if (what === 'promote') await asked(api.POST('/v1/fleet/promote'));
  else if (what === 'retry') await asked(api.POST('/v1/dead-letters/{letter}/retry', { params: { path: { letter: generation } } }));
  else {
    const path = { projection, generation };
    await asked(api.DELETE('/v1/projections/{projection}/generations/{generation}', { params: { path } }));
  }
}
