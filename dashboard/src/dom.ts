// The document, changed only where it has to be: readers and focus stay where they are.

type Child = Node | string;

export function make<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

export function say(where: Element, text: string): void {
  if (where.textContent !== text) where.textContent = text;
}

export function mark(where: Element, name: string, value: string): void {
  if (where.getAttribute(name) !== value) where.setAttribute(name, value);
}

/** The child of `parent` for each key, in this order: made where it is new, gone where it is not named. */
export function keyed<T extends HTMLElement>(parent: HTMLElement, keys: string[], create: (key: string) => T): T[] {
  const old = new Map([...parent.children].map((child) => [(child as HTMLElement).dataset.key ?? "", child as T]));
  const wanted = keys.map((key) => {
    const child = old.get(key) ?? create(key);
    child.dataset.key = key;
    old.delete(key);
    return child;
  });
  for (const gone of old.values()) gone.remove();
  wanted.forEach((child, i) => {
    if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] ?? null);
  });
  return wanted;
}

export interface Head {
  text: string;
  /** The column holds numbers, which stand to the right. */
  isNumber?: boolean;
}

let tables = 0;

/** A table with a caption; its first column names the row. */
export class Table {
  readonly element: HTMLElement;
  // Roles are said, since the sheet makes cards of rows where the screen is narrow.
  readonly body = make("tbody", { role: "rowgroup" });
  private readonly head = make("tr", { role: "row" });
  private heads = "";

  constructor(caption: string, options: { hidesCaption?: boolean } = {}) {
    const id = `table-${++tables}`;
    const title = make("caption", options.hidesCaption ? { id, class: "hidden" } : { id }, caption);
    // Reached by the keyboard, since it may have to be scrolled.
    this.element = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": id },
      make("table", { role: "table" }, title, make("thead", { role: "rowgroup" }, this.head), this.body));
  }

  columns(heads: Head[]): void {
    const key = JSON.stringify(heads);
    if (key === this.heads) return;
    this.heads = key;
    this.head.replaceChildren(...heads.map((head) =>
      make("th", { scope: "col", role: "columnheader", ...(head.isNumber ? { class: "number" } : {}) }, head.text)));
    this.body.replaceChildren();
    this.shown = heads;
  }
  private shown: Head[] = [];

  /** One row a key; `name` fills its first cell once it is made. */
  rows(keys: string[], name: (key: string, cell: HTMLElement) => void, cells: (key: string) => string[]): void {
    keyed(this.body, keys, (key) => {
      const first = make("th", { scope: "row", role: "rowheader" });
      name(key, first);
      return make("tr", { role: "row" }, first, ...this.shown.slice(1).map((head) =>
        make("td", { role: "cell", "data-label": head.text, ...(head.isNumber ? { class: "number" } : {}) })));
    }).forEach((row, i) => {
      cells(keys[i] as string).forEach((text, column) => say(row.children[column + 1] as Element, text));
    });
  }
}

/** The table behind a figure. */
export function behind(table: Table): HTMLElement {
  return make("details", {}, make("summary", {}, "As a table"), table.element);
}
