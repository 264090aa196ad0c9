// Search without a server: from a file browsers start no worker, so a hidden frame does its work.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.started = new Promise((start) => {
        const frame = document.createElement("iframe");
        frame.hidden = true;
        frame.onload = () => {
          const inside = frame.contentWindow;
          const script = frame.contentDocument.createElement("script");
          inside.postMessage = (data) =>
            this.dispatchEvent(new MessageEvent("message", { data }));
          script.src = address;
          script.onload = () => start(inside);
          frame.contentDocument.body.append(script);
        };
        document.body.append(frame);
      });
    }

    async postMessage(data) {
      const inside = await this.started;
      inside.dispatchEvent(new inside.MessageEvent("message", { data }));
    }
  };
}
