/** Hints that clients may show a user, or use, before they call a tool. They protect nothing. */
import type { ToolAnnotations } from '@modelcontextprotocol/sdk/types.js';

const READS = { readOnlyHint: true };
const ADDS = { readOnlyHint: false, destructiveHint: false };
const REPLACES = { readOnlyHint: false, destructiveHint: true };

const BY_NAME: Readonly<Record<string, ToolAnnotations>> = {
  sandbox_run: { title: 'Run a program', ...ADDS, idempotentHint: false },
  sandbox_open: { title: 'Open the sandbox', ...ADDS, idempotentHint: true },
  sandbox_exec: { title: 'Run a command', ...REPLACES, idempotentHint: false },
  sandbox_exec_read: { title: 'Read the output of a command', ...READS },
  sandbox_exec_wait: { title: 'Wait for a command', ...READS },
  sandbox_fs_write: { title: 'Write a file', ...REPLACES, idempotentHint: true },
  sandbox_fs_read: { title: 'Read a file', ...READS },
  sandbox_fs_list: { title: 'List a directory', ...READS },
  sandbox_fs_edit: { title: 'Edit a file', ...REPLACES, idempotentHint: false },
  sandbox_fs_search: { title: 'Search files', ...READS },
  sandbox_fs_delete: { title: 'Delete a file or a directory', ...REPLACES, idempotentHint: true },
  sandbox_stage_file: { title: 'Bring a stored file into the sandbox', ...REPLACES, idempotentHint: true },
  sandbox_publish_file: { title: 'Store a file of the sandbox', ...REPLACES, idempotentHint: false },
  sandbox_close: { title: 'Close the sandbox', ...REPLACES, idempotentHint: true },
};

/** The annotations of a tool. A sandbox without network reaches nothing outside itself. */
export function annotationsOf(name: string, network: boolean | undefined): ToolAnnotations {
  return { ...(BY_NAME[name] ?? REPLACES), ...(network !== undefined && { openWorldHint: network }) };
}
