// Light or dark: as the system says, until somebody chooses here.

const KEY = "leat-theme";
const THEMES = ["system", "light", "dark"];

function remembered(): string {
  try {
    const theme = localStorage.getItem(KEY) ?? "";
    return THEMES.includes(theme) ? theme : "system";
  } catch {
    return "system"; // No storage is allowed: nothing is remembered.
  }
}

/** Calls `changed` whenever colours are others than before. */
export function watchTheme(inputs: HTMLElement, changed: () => void): void {
  const apply = (theme: string): void => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    changed();
  };
  for (const input of inputs.querySelectorAll("input")) {
    input.checked = input.value === remembered();
    input.addEventListener("change", () => {
      try {
        localStorage.setItem(KEY, input.value);
      } catch {
        // As above.
      }
      apply(input.value);
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  apply(remembered());
}
