// The table of connections: sorted by any column, and filtered by words.

(() => {
  const [body, filter, count, more] = ["connections-rows", "connections-filter", "connections-count", "connections-more"].map(byId);
  if (!body) return;
  const few = 25;
  let isWhole = data.connections.length <= few + 5;
  const kernelPart = (it) => (it.lost && it.lost[2] > 0 ? it.lost[1] / it.lost[2] : -1);
  const columns = {
    name: (it) => it.name ?? "",
    kind: (it) => data.groups[it.group].name,
    count: (it) => it.whole.n,
    p50: (it) => it.whole.p[0],
    p99: (it) => it.whole.p[2],
    "p99.9": (it) => it.whole.p[3],
    max: (it) => it.whole.max,
    most: (it) => (it.most ? stageName(it.most[0]) : ""),
    kernel: kernelPart,
  };
  let order = { column: "p99", falls: true };

  const rows = data.connections.map((it, place) => {
    const group = data.groups[it.group];
    const label = `${it.name ?? "no connection"}${it.excluded ? ` (${it.excluded})` : ""}`;
    const name = it.stages ? element("button", { type: "button", class: "as-link" }, label) : label;
    if (it.stages) name.addEventListener("click", () => percentiles.choose(place));
    const took = (nanos) => (it.whole.n ? time(nanos) : "–");
    const most = it.most ? `${shortStage(it.most[0])} ${percent(it.most[1], 0)}` : "–";
    const texts = [group.name, String(it.whole.n), ...[it.whole.p[0], it.whole.p[2], it.whole.p[3], it.whole.max].map(took)];
    if (data.kernel) texts.push(it.lost ? percent(kernelPart(it), 1) : "–");
    const cells = [...texts, most].map((text, n) => element("td", n === 0 ? { class: "left" } : n === texts.length ? { class: "left most" } : {}, text));
    return { it, row: element("tr", {}, element("td", { class: "name" }, name), ...cells), text: `${label} ${texts.join(" ")} ${most}`.toLowerCase() };
  });

  function draw() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = rows.filter(({ text }) => words.every((word) => text.includes(word)));
    const key = columns[order.column];
    const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b);
    // What waits by design says nothing of speed: it stands behind the others.
    wanted.sort((a, b) => Number(Boolean(a.it.excluded)) - Number(Boolean(b.it.excluded))
      || (order.falls ? -1 : 1) * compare(key(a.it), key(b.it)));
    const shown = isWhole ? wanted : wanted.slice(0, few);
    body.replaceChildren(...shown.map(({ row }) => row));
    more.hidden = shown.length === wanted.length;
    more.textContent = `Show all ${wanted.length}`;
    const all = wanted.length === rows.length ? "" : ` of ${rows.length}`;
    const leftOut = data.left_out ? `; ${data.left_out} ${data.left_out === 1 ? "other" : "others"} did not fit into this file` : "";
    count.textContent = `${wanted.length}${all} ${rows.length === 1 ? "connection" : "connections"}${leftOut}`;
    for (const head of document.querySelectorAll("#connections th[data-sort]")) {
      const isIt = head.dataset.sort === order.column;
      if (isIt) head.setAttribute("aria-sort", order.falls ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
  }

  for (const head of document.querySelectorAll("#connections th[data-sort]")) {
    head.querySelector("button").addEventListener("click", () => {
      const column = head.dataset.sort;
      const isText = ["name", "kind", "most"].includes(column);
      order = { column, falls: order.column === column ? !order.falls : !isText };
      draw();
    });
  }
  // Of many rows only the first are shown, until all are asked for.
  more.addEventListener("click", () => {
    isWhole = true;
    draw();
  });
  filter.addEventListener("input", draw);
  draw();
})();
