import type { en } from './en';

export const zh: typeof en = {
  screens: '页面',
  agents: '智能体',
  noAgents: '尚未定义智能体：kairo agents define。',
  talk: '交谈',
  watch: '事件',
  queued: (count) => `${count} 个排队中`,
  works: '有使命',
};
