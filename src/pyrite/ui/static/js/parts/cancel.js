// The button that cancels a run, and the question before it does.

import { post } from "../api.js";
import { h } from "../dom.js";
import { toast } from "./toast.js";

export function cancelButton({ what, name, path, consequence }) {
  const button = h("button", { class: "danger", type: "button" }, `Cancel ${what}`);
  button.addEventListener("click", async () => {
    if (!(await confirmed({ what, name, consequence }))) return;
    button.disabled = true;
    try {
      await post(path);
      toast(`Asked to cancel “${name}”.`);
    } catch (error) {
      button.disabled = false;
      toast(error.message, { bad: true });
    }
  });
  return button;
}

function confirmed({ what, name, consequence }) {
  return new Promise((resolve) => {
    const no = h("button", { type: "button", autofocus: true }, "Keep it running");
    const yes = h("button", { type: "button", class: "solid-danger" }, `Cancel ${what}`);
    const dialog = h(
      "dialog",
      { "aria-labelledby": "cancel-title", "aria-describedby": "cancel-text" },
      h("h2", { id: "cancel-title" }, `Cancel “${name}”?`),
      h("p", { id: "cancel-text" }, consequence),
      h("div", { class: "buttons" }, no, yes),
    );
    const end = (answer) => {
      dialog.close(); // gives the focus back
      dialog.remove();
      resolve(answer);
    };
    no.addEventListener("click", () => end(false));
    yes.addEventListener("click", () => end(true));
    dialog.addEventListener("cancel", () => end(false));
    document.body.append(dialog);
    dialog.showModal();
  });
}
