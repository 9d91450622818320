// Server-sent events, read from pieces of text (WHATWG HTML, 9.2.6). Pure.

export interface Message {
  event: string;
  data: string;
  /** The last id that was given, of this message or one before. */
  id: string;
}

/** More of one message than this is no message of ours. */
const MAX_LENGTH = 64 * 1024 * 1024;

export class Reader {
  #rest = '';
  #id = '';
  #event = '';
  #data: string[] = [];
  #length = 0;

  /** The messages that are whole with this piece. An id without data is a message without data. */
  read(piece: string): Message[] {
    const lines = (this.#rest + piece).split('\n');
    this.#rest = lines.pop() ?? '';
    const messages: Message[] = [];
    for (const line of lines) {
      const message = this.#line(line.endsWith('\r') ? line.slice(0, -1) : line);
      if (message) messages.push(message);
    }
    if (this.#rest.length + this.#length > MAX_LENGTH) throw new Error('a message of the stream is too long');
    return messages;
  }

  #line(line: string): Message | null {
    if (line === '') return this.#end();
    const colon = line.indexOf(':');
    // A comment: the stream lives.
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'id') this.#id = value;
    else if (field === 'event') this.#event = value;
    else if (field === 'data') {
      this.#data.push(value);
      this.#length += value.length;
    }
    return null;
  }

  #end(): Message {
    const message = { event: this.#event || 'message', data: this.#data.join('\n'), id: this.#id };
    this.#event = '';
    this.#data = [];
    this.#length = 0;
    return message;
  }
}
