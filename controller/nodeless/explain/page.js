"use strict";
// Search, order and grouping of a page that can be read without them. It asks for nothing and keeps nothing.
(() => {
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const one = (id) => document.getElementById(id);
  const form = one("controls");
  if (!form) return;
  const [find, group, sort, scale, found] = ["find", "group", "sort", "scale", "found"].map(one);
  const nodes = all(".nodes > li").map((element) => ({
    element,
    text: element.textContent.toLowerCase(),
    head: element.querySelector("summary .what").textContent.toLowerCase(),
    groups: element.dataset.g.split(" ").map(Number),
    values: element.dataset.v.split(" ").map(Number),
    type: element.querySelector("b").textContent,
    bars: all("svg", element),
    lines: all(".contents tbody tr", element).map((line) => line.textContent.toLowerCase()),
  }));
  const groupings = all("[data-by]");
  const SEARCHED = "#launches tbody tr, #workloads tbody tr, .reason, #preferences li, #relaxed li, #together li";
  const rows = all(SEARCHED).map((element) => ({
    element,
    text: element.textContent.toLowerCase(),
    section: element.closest("section").id,
  }));
  const legend = [];
  const FOUND = [".nodes > li", ".cards-when-narrow > tbody > tr", ".reason"]
    .map((each) => `${each}:not([hidden])`).join();

  // Groups and their order. The numbers are those of data-v: place, price, cpu, memory, pods.
  const arrange = () => {
    const chosen = groupings.findIndex((grouping) => grouping.dataset.by === group.value);
    const by = Number(sort.value);
    const ordered = [...nodes].sort((one, other) =>
      (by === 0 ? 0
        : by === 5 ? one.type.localeCompare(other.type, undefined, { numeric: true })
        : other.values[by] - one.values[by]) || one.values[0] - other.values[0]);
    groupings.forEach((grouping, number) => { grouping.hidden = number !== chosen; });
    const lists = all(".nodes", groupings[chosen]);
    const inside = lists.map(() => []);
    for (const node of ordered) inside[node.groups[chosen]].push(node);
    const largestOfAll = largest(nodes);
    inside.forEach((members, number) => {
      lists[number].append(...members.map((node) => node.element));
      draw(members, scale.value === "all" ? largestOfAll : scale.value === "group" ? largest(members) : {});
    });
  };

  // How long bars are, as `picture.py` has it.
  const largest = (members) => {
    const found = {};
    for (const { dataset: { r, s } } of members.flatMap((node) => node.bars)) {
      found[r] = Math.max(found[r] || 0, Number(s));
    }
    return found;
  };
  const draw = (members, largest) => {
    for (const bar of members.flatMap((node) => node.bars)) {
      const part = Number(bar.dataset.s) / (largest[bar.dataset.r] || 1);
      bar.setAttribute("width", `${(100 * Math.min(1, Math.max(1 / 3, Math.sqrt(part)))).toFixed(1)}%`);
    }
  };

  // What is unfolded because of a search is folded again after it.
  const unfolded = new Set();
  const unfold = (details) => {
    if (details && !details.open) {
      details.open = true;
      unfolded.add(details);
    }
  };

  const filter = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (text) => words.every((word) => text.includes(word));
    unfolded.forEach((details) => { details.open = false; });
    unfolded.clear();
    const counts = {};
    const see = (section, element, shown) => {
      element.hidden = !shown;
      const count = counts[section] ||= [0, 0];
      count[0] += shown;
      count[1] += 1;
    };
    for (const node of nodes) {
      const shown = has(node.text);
      see("nodes", node.element, shown);
      const hits = node.lines.map((line) => words.length > 0 && shown && has(line));
      const some = hits.some(Boolean);
      if (some || node.element.classList.contains("finding")) {
        for (const bar of node.bars) hits.forEach((hit, place) => bar.children[place].classList.toggle("hit", hit));
      }
      node.element.classList.toggle("finding", some);
      if (words.length && shown) {
        unfold(node.element.closest(".group"));
        if (!some && !has(node.head)) unfold(node.element.querySelector("details"));
      }
    }
    for (const row of rows) {
      const shown = has(row.text);
      see(row.section, row.element, shown);
      if (words.length && shown) {
        unfold(row.element.closest(".fold, .more"));
        const names = row.element.querySelector(".pods");
        if (names && !has(row.text.replace(names.textContent.toLowerCase(), ""))) unfold(names);
      }
    }
    for (const details of all(".group, .fold, .more")) {
      details.hidden = words.length > 0 && !details.querySelector(FOUND);
    }
    const names = {
      refused: "reasons", preferences: "costs of preferences", relaxed: "preferences",
      together: "kept together", nodes: "rows of nodes", launches: "launches", workloads: "workloads",
    };
    found.textContent = words.length
      ? Object.entries(counts).map(([section, [shown, total]]) => `${shown} of ${total} ${names[section]}`).join(", ")
      : "";
    for (const { button, text } of legend) button.setAttribute("aria-pressed", String(find.value === text));
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    const heads = all("thead th", table);
    const value = (row, place) => {
      const text = row.cells[place].textContent;
      return heads[place].classList.contains("number") ? parseFloat(text.replaceAll(",", "")) || 0 : text;
    };
    heads.forEach((head, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const numbers = head.classList.contains("number");
        const before = head.getAttribute("aria-sort");
        const up = before ? before === "descending" : !numbers;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const ordered = [...body.rows].sort((one, other) => {
          const [left, right] = [value(one, place), value(other, place)];
          return numbers ? left - right : left.localeCompare(right, undefined, { numeric: true });
        });
        body.append(...(up ? ordered : ordered.reverse()));
      });
    });
  };

  for (const item of all(".legend li")) {
    const name = item.querySelector("bdi");
    if (!name) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...item.childNodes);
    item.append(button);
    const text = name.textContent;
    legend.push({ button, text });
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      find.value = find.value === text ? "" : text;
      filter();
    });
  }

  // What a piece of a bar is, where one points at it: its line in what the node holds.
  for (const node of nodes) {
    node.element.addEventListener("pointerenter", () => {
      const lines = all(".contents tbody tr", node.element);
      for (const bar of node.bars) {
        [...bar.children].forEach((rect, place) => {
          const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
          title.textContent = all("td", lines[place]).map((cell) => cell.textContent).join(" · ");
          rect.append(title);
        });
      }
    }, { once: true });
  }

  const folds = () => all(".group, .fold, .more");
  one("unfold").addEventListener("click", () => folds().forEach((details) => { details.open = true; }));
  one("fold").addEventListener("click", () => all("details").forEach((details) => { details.open = false; }));
  group.addEventListener("change", () => { arrange(); filter(); });
  sort.addEventListener("change", arrange);
  scale.addEventListener("change", arrange);
  find.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  // A link to a section unfolds it.
  for (const link of all("nav a")) {
    link.addEventListener("click", () => {
      const section = one(link.hash.slice(1));
      const fold = section && section.querySelector(".fold");
      if (fold) fold.open = true;
    });
  }
  // Where a style cannot unfold what is printed.
  let printed = [];
  addEventListener("beforeprint", () => {
    printed = all("details:not([open])");
    printed.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => { printed.forEach((details) => { details.open = false; }); });

  all("table.cards-when-narrow").forEach(sortable);
  document.documentElement.classList.add("can-sort");
  form.hidden = false;
  // A browser that comes back to the page fills the form as it was left.
  if (nodes.length) arrange();
  filter();
})();
