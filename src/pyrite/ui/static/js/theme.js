// Dark or light, before anything is drawn. It is no module, because modules run later.
{
  const root = document.documentElement;
  const kept = () => {
    try {
      return localStorage.getItem("pyrite-theme") || "auto";
    } catch {
      return "auto"; // storage is off
    }
  };
  const show = (theme) => {
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
  };
  const NEXT = { auto: "light", light: "dark", dark: "auto" };
  const SIGNS = { auto: "◐ Auto", light: "☀ Light", dark: "☾ Dark" };
  show(kept());
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const label = () => {
      const [sign, word] = SIGNS[kept()].split(" ");
      const shown = document.createElement("span");
      shown.textContent = sign;
      shown.setAttribute("aria-hidden", "true");
      button.replaceChildren(shown, word);
      button.title = "Colours: as the system says, light or dark";
    };
    button.addEventListener("click", () => {
      try {
        localStorage.setItem("pyrite-theme", NEXT[kept()]);
      } catch {
        return;
      }
      show(kept());
      label();
    });
    label();
  });
}
