import { Fragment, h, render, VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { enter, logIn, Refused, watch } from "./api";
import { at, Clusters } from "./clusters";
import { ofCondition } from "./judge";
import { NodePage } from "./node";
import { Age, State } from "./parts";
import { Configuration, History, Operations } from "./past";
import { Plan } from "./plan";
import { Ring } from "./ring";
import { View } from "./types";

interface Place { namespace: string; cluster: string; page: string; node: string }

const pages: [string, string, (p: { is: View }) => VNode][] = [
  ["ring", "Ring", Ring], ["plan", "Plan", Plan], ["history", "History", History],
  ["operations", "Operations", Operations], ["configuration", "Configuration", Configuration],
];

function placeOf(hash: string): Place {
  const [, namespace = "", cluster = "", page = "", node = ""] = hash.split("/").map(decoded);
  return { namespace, cluster, page: page || "ring", node };
}

function decoded(text: string): string {
  try { return decodeURIComponent(text); } catch { return text; }
}

function Console() {
  const [place, go] = useState(placeOf(location.hash));
  const [error, setError] = useState<Error>();
  const heading = useRef<HTMLHeadingElement>(null);
  const title = place.node || (place.cluster ? place.namespace + "/" + place.cluster : "Clusters");
  useEffect(() => {
    const moved = () => {
      go(placeOf(location.hash));
      heading.current?.focus();
    };
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => { document.title = title + " – Helenus"; }, [title]);
  return <Fragment>
    <header>
      <a class="brand" href="#/">Helenus</a>
      {place.cluster && <a href={"#/" + place.namespace}>Clusters of {place.namespace}</a>}
      {place.node && <a href={at(place)}>{place.namespace}/{place.cluster}</a>}
    </header>
    <main>
      <h1 ref={heading} tabIndex={-1}>{title}</h1>
      {error instanceof Refused && error.token && <LogIn done={() => setError(undefined)} />}
      {error && <p class="callout" role="alert"><State kind="bad">{said(error)}</State> {error.message}</p>}
      {place.cluster ? <Cluster key={place.namespace + "/" + place.cluster} place={place} failed={setError} />
        : <Clusters namespace={place.namespace} failed={setError} />}
    </main>
  </Fragment>;
}

// LogIn takes a token. What the page asks again and again is answered with it, so that the page need not be loaded again.
function LogIn({ done }: { done: () => void }) {
  const [token, set] = useState("");
  const [wrong, tell] = useState("");
  const give = async (e: Event) => {
    e.preventDefault();
    set("");
    try {
      await logIn(token);
      done();
    } catch (e) {
      tell((e as Error).message);
    }
  };
  return <form onSubmit={give} autocomplete="off">
    <p><label>Token <input type="password" required autocomplete="off" value={token} onInput={(e) => set(e.currentTarget.value)} /></label>{" "}
      <button type="submit">Log in for an hour</button></p>
    {wrong && <p role="status"><State kind="bad">Not taken</State> {wrong}</p>}
    <p class="none">One that Kubernetes knows, such as <code>kubectl create token NAME --namespace NAMESPACE</code> prints it
      for a service account. It shows what that may get.</p>
  </form>;
}

function said(e: Error): string {
  if (!(e instanceof Refused)) return "No connection, trying again.";
  if (e.status === 401) return "Not authenticated.";
  return e.status === 403 ? "You may not see this." : "Not now, trying again.";
}

function Cluster({ place, failed }: { place: Place; failed: (e?: Error) => void }) {
  const [is, show] = useState<View>();
  const [seen, beat] = useState<string>();
  const [live, setLive] = useState(false);
  useEffect(() => {
    const path = `/v1/namespaces/${encodeURIComponent(place.namespace)}/clusters/${encodeURIComponent(place.cluster)}/watch`;
    const end = watch<View>(path, {
      view: (next) => { show(next); setLive(true); failed(); },
      beat,
      failed: (e) => { setLive(false); failed(e); },
    });
    return () => { end(); failed(); };
  }, []);
  if (!is) return <p>Asking the operator …</p>;
  const Page = pages.find(([page]) => page === place.page)?.[2] ?? Ring;
  return <Fragment>
    <p class="seen">{live ? <State kind="ok">Live</State> : <State kind="bad">What follows is old</State>}
      {seen && <Fragment>{" last pass "}<Age at={seen} /> by {is.operator.pod} (Helenus {is.operator.version})</Fragment>}</p>
    <ul class="conditions">{(is.status.conditions ?? []).map((c) => <li key={c.type}>
      <State kind={ofCondition(c)}>{c.type}{c.status === "True" ? "" : ": " + c.status}</State> <span>{c.reason}: {c.message}</span>
    </li>)}</ul>
    {is.deleting && <p class="callout"><State kind="work">Being deleted</State></p>}
    {is.paused && <p class="callout"><State kind="idle">Paused</State> No step is begun.</p>}
    {is.stopped && <p class="callout"><State kind="idle">Stopped</State> No node is to run.</p>}
    {is.status.observedGeneration !== is.generation &&
      <p class="callout"><State kind="work">The spec has changed</State> What follows is about the one before.</p>}
    {place.page !== "node" && <nav aria-label="Pages of the cluster">{pages.map(([page, name]) =>
      <a key={page} href={at(place, page)} aria-current={page === place.page ? "page" : undefined}>{name}</a>)}</nav>}
    {place.page === "node" ? <NodePage is={is} name={place.node} /> : <Page is={is} />}
  </Fragment>;
}

const root = document.getElementById("console")!;
enter().then(() => render(<Console />, root),
  (e: Error) => render(<main><h1>Helenus</h1><p class="callout" role="alert"><State kind="bad">{said(e)}</State> {e.message}</p></main>, root));
