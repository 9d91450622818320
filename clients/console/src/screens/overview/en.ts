export const en = {
  screens: 'Screens',
  agents: 'Agents',
  noAgents: 'No agent is defined yet: kairo agents define.',
  talk: 'Talk',
  watch: 'Events',
  queued: (count: string) => `${count} queued`,
  works: 'has a mission',
};
