/**
 * Tools for Kairo's agents, carried out by a process of yours. The protocol is in docs/tool-workers.md of Kairo.
 */
export { type Call, type Json, ToolError } from "./call.js";
export { type Tool, type ToolFunction, Worker, type WorkerOptions } from "./worker.js";
