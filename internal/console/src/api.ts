// How the page asks: with the key of this window, or through a Service with its cookie, by fetch alone. A stream is
// read by fetch, too, since an EventSource sends no key.

const longest = 32 << 20; // characters of an event; the operator sends half of that at most
const silence = 40_000; // without a heart beat for so long a stream is given up
const retry = 3_000;

export class Refused extends Error {
  constructor(readonly status: number, message: string, readonly token = false) { super(message); }
}

let key = "";

// enter takes the key from the address, once, and says where the address leads to.
export async function enter(): Promise<string | undefined> {
  key = sessionStorage.getItem("helenus") ?? "";
  const given = new URLSearchParams(location.hash.slice(1));
  const once = given.get("once");
  if (once === null) return undefined;
  history.replaceState(null, "", "#/" + (given.get("at") ?? ""));
  const answer = await fetch("session", { method: "POST", body: once });
  if (!answer.ok) {
    if (key !== "") return location.hash; // the address was opened again in the window that it let in
    throw await refusal(answer);
  }
  key = await answer.text();
  sessionStorage.setItem("helenus", key);
  return location.hash;
}

// logIn gives the operator a token, for which the browser keeps a cookie that no script can read.
export async function logIn(token: string): Promise<void> {
  const answer = await fetch("session", { method: "POST", body: token });
  if (!answer.ok) throw await refusal(answer);
}

async function refusal(answer: Response): Promise<Refused> {
  let why = answer.statusText;
  try {
    why = (await answer.json() as { error: string }).error;
  } catch { /* it is not from the operator */ }
  // Only a window without a key may give a token: the others came by kubectl helenus console.
  return new Refused(answer.status, why, key === "" && answer.headers.has("WWW-Authenticate"));
}

async function ask(path: string, signal: AbortSignal): Promise<Response> {
  const answer = await fetch(path, { headers: key === "" ? {} : { Authorization: "Bearer " + key }, cache: "no-store", signal });
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

export async function get<T>(path: string, signal: AbortSignal): Promise<T> {
  return await (await ask(path, signal)).json() as T;
}

// repeat does something again and again until it is told to end; each time by one promise.
function repeat(once: (signal: AbortSignal) => Promise<void>, pause: number, failed: (e: Error) => void): () => void {
  const ended = new AbortController();
  const run = async () => {
    while (!ended.signal.aborted) {
      let wait = pause;
      try {
        await once(ended.signal);
      } catch (e) {
        if (ended.signal.aborted) return;
        failed(e as Error);
        wait = retry;
      }
      await new Promise((done) => setTimeout(done, wait));
    }
  };
  void run();
  return () => ended.abort();
}

export function poll<T>(path: string, pause: number, got: (answer: T) => void, failed: (e: Error) => void): () => void {
  return repeat(async (signal) => got(await get<T>(path, signal)), pause, failed);
}

export interface Watcher<T> { view(is: T): void; beat(at: string): void; failed(e: Error): void }

export function watch<T>(path: string, to: Watcher<T>): () => void {
  return repeat(async (signal) => {
    const quiet = new AbortController();
    const end = () => quiet.abort();
    signal.addEventListener("abort", end);
    let timer = setTimeout(end, silence);
    try {
      const reader = (await ask(path, quiet.signal)).body!.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = "", from = 0; ;) {
        const { done, value } = await reader.read();
        if (done) throw new Error("the operator ended the connection");
        clearTimeout(timer);
        timer = setTimeout(end, silence);
        text += value;
        for (let at = text.indexOf("\n\n", from); at >= 0; at = text.indexOf("\n\n")) {
          tell(text.slice(0, at), to);
          text = text.slice(at + 2);
        }
        from = Math.max(0, text.length - 1);
        if (text.length > longest) throw new Error("the operator sent too much");
      }
    } finally {
      clearTimeout(timer);
      end();
      signal.removeEventListener("abort", end);
    }
  }, retry, to.failed);
}

function tell<T>(event: string, to: Watcher<T>) {
  const [, name, data] = /^event: (\w+)\ndata: ([^\n]*)$/.exec(event) ?? [];
  if (name === "view") to.view(JSON.parse(data) as T);
  else if (name === "beat") to.beat(data);
  else if (name === "end") throw new Error(data);
}
