// A click on a heading sorts its table, and a second one the other way around.
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const place = button.parentElement.cellIndex;
    const table = button.closest("table");
    const way = button.dataset.way === "1" ? -1 : 1;
    button.dataset.way = way;
    const key = (row) => {
      const cell = row.cells[place];
      const value = parseFloat(cell.dataset.value ?? cell.textContent);
      return Number.isNaN(value) ? cell.textContent : value;
    };
    const compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      // Numbers stand before text and before what is missing, whichever way.
      if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
      return way * (typeof x === "number" ? x - y : x.localeCompare(y));
    };
    const rows = Array.from(table.tBodies).flatMap((body) => Array.from(body.rows)).sort(compare);
    table.tBodies[0].append(...rows);
  });
}
