/** The longest line of a stream, in characters; a longer line is no answer of samya. */
export const longestLine = 4 << 20;

/** Cuts the text of a stream into lines, as the text comes in pieces. */
export class Lines {
  private rest = "";

  /** Takes a piece and returns the lines that it completes, without empty lines. */
  take(piece: string): string[] {
    const parts = (this.rest + piece).split("\n");
    this.rest = parts.pop() ?? "";
    if (this.rest.length > longestLine) {
      this.rest = "";
      throw new RangeError(`a line of a stream is longer than ${longestLine} characters`);
    }
    return parts.map((l) => l.trim()).filter((l) => l !== "");
  }
}
