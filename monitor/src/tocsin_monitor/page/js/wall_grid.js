/** How many tiles fit on a display, and in which grid they are largest. */

/** A smaller tile cannot be read from across the room: parts of the display's shorter side, and pixels at least. */
const SMALLEST = { width: 0.3, height: 0.2, pixelsWide: 240, pixelsHigh: 130 };
/** The shape that suits words: width for one of height. */
const SHAPE = 1.6;

/**
 * The grid for so many tiles; where they cannot all be large enough, for as many as can.
 * @param {number} many
 * @param {number} width
 * @param {number} height
 * @returns {{columns: number, rows: number}}
 */
export function tilesThatFit(many, width, height) {
  const shorter = Math.min(width, height);
  const most = (/** @type {number} */ length, /** @type {number} */ smallest) => Math.max(1, Math.floor(length / smallest));
  const mostColumns = most(width, Math.max(SMALLEST.pixelsWide, SMALLEST.width * shorter));
  const mostRows = most(height, Math.max(SMALLEST.pixelsHigh, SMALLEST.height * shorter));
  let best = { columns: mostColumns, rows: mostRows };
  let largest = 0;
  for (let columns = 1; columns <= mostColumns; columns++) {
    const rows = Math.ceil(many / columns);
    if (rows > mostRows) continue;
    const size = Math.min(width / columns, (SHAPE * height) / Math.max(1, rows));
    if (size > largest) [best, largest] = [{ columns, rows }, size];
  }
  return best;
}
