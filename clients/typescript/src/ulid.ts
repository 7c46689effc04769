import { randomBytes } from "node:crypto";

const letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** A new request id: a ULID, 48 bits of time in milliseconds and 80 random bits. */
export function newId(wall: number = Date.now()): string {
  let time = "";
  for (let t = Math.floor(wall), i = 0; i < 10; i++) {
    time = letters[t % 32] + time;
    t = Math.floor(t / 32);
  }
  return time + Array.from(randomBytes(16), (b) => letters[b % 32]).join("");
}
