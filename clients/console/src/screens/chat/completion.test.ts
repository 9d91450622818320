import { expect, test } from 'vitest';
import type { AgentRow, DeclaredCommand } from '$lib/api/types';
import { named, offers } from './completion';

const commands = ['search', 'seek', 'ask'].map((command): DeclaredCommand => ({ command, agent: 'cook', label: command, help: '' }));
const agents = ['cook', 'coach', 'aide'].map((agent) => ({ agent, profile: { description: `the ${agent}` } }) as unknown as AgentRow);
const texts = (written: string) => offers(written, commands, agents).map(({ text }) => text);

test('a command is offered until it is whole', () => {
  expect(texts('/')).toEqual(['/search ', '/seek ', '/ask ']);
  expect(texts('/se')).toEqual(['/search ', '/seek ']);
  for (const written of ['/seek', '/seek ', '/x', 'seek', '']) expect(texts(written)).toEqual([]);
});

test('a name is offered as long as nothing is said', () => {
  expect(offers('@cook', commands, agents)).toEqual([{ text: '@cook ', about: 'the cook' }]);
  expect(texts('@co')).toEqual(['@cook ', '@coach ']);
  for (const written of ['@cook hello', '@x', 'a@co']) expect(texts(written)).toEqual([]);
});

test('what begins with the name of an agent is for that agent', () => {
  expect(named('@aide two\nlines', agents)).toEqual({ agent: 'aide', words: 'two\nlines' });
  for (const written of ['@aide', '@aide ', '@nobody hello', 'hello @aide there']) expect(named(written, agents)).toBeNull();
});
