extension ReportPage {
    static let style = """
        :root { color-scheme: light dark; --line: #8884; --bar: #2f6fde; --bad: #c8322b; --good: #1d8348; }
        body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 78rem; padding: 0 1rem; }
        h1 { margin: 0; font-size: 1.6rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
        .folder { margin: .2rem 0 1rem; opacity: .7; overflow-wrap: anywhere; }
        .cards { display: flex; flex-wrap: wrap; gap: .6rem; }
        .card { border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .8rem; min-width: 7rem; }
        .card b { display: block; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
        .card.bad b { color: var(--bad); }
        .remarks { border-left: 4px solid var(--bad); padding: .4rem 1rem .4rem 2rem; overflow-wrap: anywhere; }
        svg { width: 100%; max-width: 60rem; height: auto; }
        svg text { font-size: 10px; text-anchor: middle; fill: currentColor; }
        svg .bar { fill: var(--bar); } svg .hit { fill: transparent; }
        table { border-collapse: collapse; width: 100%; }
        th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
        td { overflow-wrap: anywhere; } td.n, td.ended, td.unfinished, td.missing { white-space: nowrap; }
        td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
        th { background: canvas; position: sticky; top: 0; white-space: nowrap; } th.wide { width: 40%; }
        th[data-key] { cursor: pointer; } th[aria-sort=ascending]::after { content: " \\2191"; }
        th[aria-sort=descending]::after { content: " \\2193"; }
        .scroll { max-height: 28rem; overflow: auto; }
        .track { white-space: nowrap; } .track i { display: inline-block; height: .8em; background: var(--bar); }
        .track i.bad { background: var(--bad); }
        .ended { color: var(--good); } .unfinished, .missing { color: var(--bad); font-weight: 600; }
        .kinds { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .4rem 1.5rem; }
        input, button { font: inherit; }
        """

    /// Sorts, filters and pages the failures; only one page of them is in the document.
    static let script = """
        const rows = JSON.parse(document.getElementById("data").textContent);
        const table = document.getElementById("failures");
        if (table) {
          const size = 100, body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
          const filter = document.getElementById("filter"), shown = document.getElementById("shown");
          const previous = document.getElementById("previous"), next = document.getElementById("next");
          const compare = new Intl.Collator("en", { numeric: true }).compare;
          let view = rows, page = 0, key = null, up = true;
          function draw() {
            const first = page * size, some = view.slice(first, first + size);
            body.replaceChildren(...some.map(row => {
              const line = document.createElement("tr");
              for (const head of heads) {
                const value = row[head.dataset.key], cell = line.insertCell();
                cell.textContent = typeof value === "number" ? value.toLocaleString("en") : value;
                if (typeof value === "number") cell.className = "n";
              }
              return line;
            }));
            shown.textContent = view.length === 0 ? "none"
              : `${(first + 1).toLocaleString("en")} to ${(first + some.length).toLocaleString("en")} of `
                + view.length.toLocaleString("en");
            previous.disabled = page === 0;
            next.disabled = first + size >= view.length;
            for (const head of heads) {
              if (head.dataset.key === key) head.setAttribute("aria-sort", up ? "ascending" : "descending");
              else head.removeAttribute("aria-sort");
            }
          }
          function select() {
            const words = filter.value.toLowerCase();
            view = rows.filter(row => !words || `${row.path}\\n${row.code}\\n${row.message}`.toLowerCase().includes(words));
            if (key) {
              view.sort((a, b) => {
                const order = typeof a[key] === "number" ? a[key] - b[key] : compare(a[key], b[key]);
                return up ? order : -order;
              });
            }
            page = 0;
            draw();
          }
          for (const head of heads) {
            head.addEventListener("click", () => {
              up = key === head.dataset.key ? !up : true;
              key = head.dataset.key;
              select();
            });
          }
          filter.addEventListener("input", select);
          previous.addEventListener("click", () => { page -= 1; draw(); });
          next.addEventListener("click", () => { page += 1; draw(); });
          draw();
        }
        """
}
