import { Fragment, h, ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

// Kind of a state. Each has a sign and a word beside its colour.
export type Kind = "ok" | "work" | "warn" | "bad" | "idle";

const signs: Record<Kind, string> = { ok: "●", work: "◐", warn: "▲", bad: "✖", idle: "○" };

export function State({ kind, children }: { kind: Kind; children: ComponentChildren }) {
  return <span class={"state " + kind}><span aria-hidden="true">{signs[kind]}</span> {children}</span>;
}

export function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return <section aria-label={title}><h2>{title}</h2>{children}</section>;
}

type Cell = ComponentChildren;

// Table scrolls by itself where it does not fit, so that the page never does.
export function Table({ name, head, rows, none }: { name: string; head: string[]; rows: Cell[][]; none?: string }) {
  if (rows.length === 0) return none ? <p class="none">{none}</p> : null;
  return <div class="scroll" tabIndex={0} role="region" aria-label={name}>
    <table aria-label={name}>
      <thead><tr>{head.map((text) => <th scope="col" key={text}>{text}</th>)}</tr></thead>
      <tbody>{rows.map((row, i) => <tr key={i}>{row.map((cell, j) => j === 0
        ? <th scope="row" key={j}>{cell}</th> : <td key={j}>{cell}</td>)}</tr>)}</tbody>
    </table>
  </div>;
}

// Facts are names with values; those without a value are left out.
export function Facts({ rows }: { rows: [string, Cell][] }) {
  const known = rows.filter(([, value]) => value !== undefined && value !== "" && value !== null);
  return <dl>{known.map(([name, value]) => <Fragment key={name}><dt>{name}</dt><dd>{value}</dd></Fragment>)}</dl>;
}

// word is what a shell takes as one word.
function word(text: string): string {
  return /^[\w./:=@%+-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'";
}

// Command is text to copy: the page itself changes nothing.
export function Command({ does, words }: { does: string; words: string[] }) {
  const text = words.map(word).join(" ");
  const [said, say] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("copied");
    } catch {
      say("select the text to copy it");
    }
  };
  return <div class="command">
    <span>{does}</span>{" "}<code>{text}</code>{" "}
    <button type="button" onClick={copy} aria-label={"Copy the command: " + does}>Copy</button>
    <span role="status">{said}</span>
  </div>;
}

export function Age({ at }: { at?: string }) {
  useClock();
  return at ? <time dateTime={at} title={at}>{span(Date.now() - Date.parse(at))} ago</time> : <Fragment>–</Fragment>;
}

// useClock draws again as time goes by.
function useClock() {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 10_000);
    return () => clearInterval(timer);
  }, []);
}

export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  for (const [unit, size, next] of [["d", 86400, 2], ["h", 3600, 2], ["m", 60, 2]] as const) {
    if (seconds >= size * next) return Math.floor(seconds / size) + unit;
  }
  return seconds + "s";
}

export function took(from: string, to: string): string { return span(Date.parse(to) - Date.parse(from)); }

export function bytes(n?: number): string {
  if (!n) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return (i === 0 ? n : n.toFixed(1)) + " " + units[i];
}

export function percent(n?: number): string { return n === undefined ? "–" : (n * 100).toFixed(1) + " %"; }

// some are the first of many names.
export function some(names?: string[], most = 8): string {
  if (!names || names.length === 0) return "–";
  const more = names.length - most;
  return names.slice(0, most).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
