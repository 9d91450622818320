// Whether what is shown is kept up with, and since when not.
export class Contact {
  connected = $state(false);
  /** When it was lost last, in milliseconds since 1970: what is shown is as old as that. */
  lost = $state<number | null>(null);

  heard(connected: boolean) {
    if (this.connected && !connected) this.lost = Date.now();
    this.connected = connected;
  }
}
