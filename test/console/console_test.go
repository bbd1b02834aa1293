package console

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// tab is a window of a browser that was let in.
type tab struct {
	testing.TB
	ctx context.Context
	*desk

	mutex sync.Mutex
	// wrong are errors of the page, and what it asked of others.
	wrong []string
	// refused says that the operator is to refuse what is asked, which the browser reports.
	refused bool
}

// open opens the console in a browser. The tests that need one are skipped where there is none.
func open(t testing.TB, d *desk) *tab {
	t.Helper()
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("there is no Chromium on this machine: \"make test-console\" installs Debian's")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser), chromedp.NoSandbox,
		chromedp.IgnoreCertErrors)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 3*time.Minute) // of a machine that is very busy
	t.Cleanup(cancel)
	b := &tab{TB: t, ctx: ctx, desk: d}
	chromedp.ListenTarget(ctx, b.listen)
	// The clock stands still, and the clipboard is one that needs no permission.
	world := fmt.Sprintf("Date.now = () => %d; Object.defineProperty(navigator, 'clipboard', "+
		"{value: {writeText: async (text) => { window.copied = text }}})", now.UnixMilli())
	b.run(network.Enable(), log.Enable(), chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(world).Do(ctx)
		return err
	}))
	if strings.HasPrefix(d.URL, "https:") {
		b.refuse() // what it asks without a token
		b.run(chromedp.Navigate(d.URL + "/"))
	} else {
		b.run(chromedp.Navigate(d.URL+"/console/#once=key&at="), chromedp.WaitVisible("table"))
	}
	t.Cleanup(func() {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		for _, what := range b.wrong {
			t.Error(what)
		}
	})
	return b
}

func (b *tab) listen(event any) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.wrong = append(b.wrong, "exception: "+e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if !b.down.Load() && (!b.refused || e.Entry.Source != log.SourceNetwork) {
			b.wrong = append(b.wrong, "the browser complains: "+e.Entry.Text)
		}
	case *page.EventJavascriptDialogOpening:
		b.wrong = append(b.wrong, "a script of somebody else ran: "+e.Message)
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.URL+"/") {
			b.wrong = append(b.wrong, "asked "+e.Request.URL)
		}
	}
}

func (b *tab) run(actions ...chromedp.Action) {
	b.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// value is that of an expression.
func value[T any](b *tab, expression string) T {
	b.Helper()
	var out T
	b.run(chromedp.Evaluate(expression, &out))
	return out
}

// until waits for an expression to be true.
func (b *tab) until(expression string) {
	b.Helper()
	b.run(chromedp.Poll(expression, nil, chromedp.WithPollingInterval(20*time.Millisecond)))
}

// at goes to a place of the console.
func (b *tab) at(place string) {
	b.Helper()
	b.run(chromedp.Evaluate(fmt.Sprintf("location.hash = %q", "#/"+place), nil))
	b.until("document.querySelector('main h2') && !document.body.textContent.includes('Asking the operator') &&" +
		" (document.querySelector('nav [aria-current]')?.hash ?? location.hash) === location.hash &&" +
		" (document.querySelector('.seen')?.textContent.includes('last pass') ?? true)")
}

// element of the accessibility tree. That of chromedp refuses what a newer Chromium says.
type element struct {
	NodeID   string   `json:"nodeId"`
	Ignored  bool     `json:"ignored"`
	Role     text     `json:"role"`
	Name     text     `json:"name"`
	ChildIDs []string `json:"childIds"`
}

type text struct {
	Value string `json:"value"`
}

// said is what a reader of the screen reads: a line for each element that means something.
func (b *tab) said() string {
	b.Helper()
	var tree struct {
		Nodes []element `json:"nodes"`
	}
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		return cdp.Execute(ctx, accessibility.CommandGetFullAXTree, nil, &tree)
	}))
	byID := map[string]element{}
	for _, n := range tree.Nodes {
		byID[n.NodeID] = n
	}
	var lines []string
	plain := "" // text that goes on
	say := func(line string) {
		if words := strings.Join(strings.Fields(plain), " "); words != "" {
			lines = append(lines, words)
		}
		if plain = ""; line != "" {
			lines = append(lines, line)
		}
	}
	var walk func(n element, inside string)
	walk = func(n element, inside string) {
		role, name := n.Role.Value, n.Name.Value
		switch {
		case n.Ignored, role == "InlineTextBox", role == "RootWebArea", name == "", name == inside:
		case role == "StaticText" && strings.Contains(inside, strings.TrimSpace(name)) && strings.TrimSpace(name) != "":
			// It was read with what it is in.
		case role == "StaticText":
			plain += name
		default:
			say(role + ": " + strings.TrimSpace(name))
			inside = name
		}
		for _, id := range n.ChildIDs {
			walk(byID[id], inside)
		}
		if inside == name && name != "" || role == "paragraph" || role == "listitem" || role == "generic" {
			say("")
		}
	}
	walk(tree.Nodes[0], "")
	say("")
	return strings.Join(lines, "\n") + "\n"
}

// tooFaint are texts whose contrast to what is behind them is less than 4.5 (WCAG 2.1, 1.4.3).
const tooFaint = `(() => {
  const rgb = (c) => c.match(/[\d.]+/g).map(Number);
  const light = (c) => rgb(c).slice(0, 3).map((v) => v / 255).map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (rgb(c)[3] !== 0) return c; } return "rgb(255,255,255)"; };
  return [...document.querySelectorAll("body *")].filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) &&
    e.checkVisibility()).filter((e) => {
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
    return (a + .05) / (b + .05) < 4.5; }).map((e) => e.tagName + ": " + e.textContent);
})()`

// axe is axe-core: see the README beside it.
//
//go:embed axe/axe.min.js
var axe string

// serious are the rules of accessibility that a page breaks gravely, by axe-core, each with where.
const serious = `axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations
  .filter((v) => ["serious", "critical"].includes(v.impact))
  .map((v) => v.id + ": " + v.nodes.map((n) => n.html).join(" ")))`

func (b *tab) breaks() (rules []string) {
	b.Helper()
	if !value[bool](b, "!!window.axe") {
		b.run(chromedp.Evaluate(axe, nil))
	}
	b.run(chromedp.Evaluate(serious, &rules, func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
		return p.WithAwaitPromise(true)
	}))
	return rules
}

// axe-core finds what the page must not have.
func TestBarriersAreFound(t *testing.T) {
	b := open(t, serve(t, healthy("orders", 1, 3, 2)))
	b.run(chromedp.Evaluate("document.querySelector('main').append(document.createElement('button')), 0", nil))
	if rules := b.breaks(); len(rules) != 1 || !strings.HasPrefix(rules[0], "button-name") {
		t.Errorf("a button without a name breaks %q", rules)
	}
}

// What each page says of a ring that is well and of one that is not, dark and light, also on a
// narrow screen, with names that would be markup.
func TestPages(t *testing.T) {
	d := serve(t, healthy("orders", 2, 6, 4), trouble())
	b := open(t, d)
	for _, place := range []string{"", "shop/orders/ring", "shop/orders/configuration", "shop/broken/ring",
		"shop/broken/plan", "shop/broken/history", "shop/broken/operations", "shop/broken/configuration",
		"shop/broken/node/broken-dc1-r1-0", "shop/broken/node/broken-dc1-r3-0"} {
		t.Run(place, func(t *testing.T) {
			b := &tab{TB: t, ctx: b.ctx, desk: d}
			for _, scheme := range []string{"light", "dark"} {
				b.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
					{Name: "prefers-color-scheme", Value: scheme}}))
				b.at(place)
				if faint := value[[]string](b, tooFaint); len(faint) > 0 {
					t.Errorf("%s: hard to read: %q", scheme, faint)
				}
				if rules := b.breaks(); len(rules) > 0 {
					t.Errorf("%s: breaks %q", scheme, rules)
				}
			}
			if n := value[int](b, "document.images.length"); n > 0 {
				t.Errorf("%d images were made of texts", n)
			}
			b.golden(strings.ReplaceAll(strings.Trim("clusters/"+place, "/"), "/", "-"), b.said())
			b.run(emulation.SetDeviceMetricsOverride(390, 844, 1, true))
			if wide := value[int](b, "document.documentElement.scrollWidth"); wide > 390 {
				t.Errorf("%d px wide on a screen of 390", wide)
			}
			b.run(emulation.ClearDeviceMetricsOverride())
		})
	}
}

func (b *tab) refuse() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.refused = true
}

// saidIn is what a reader of the screen reads of a section.
func (b *tab) saidIn(section string) string {
	b.Helper()
	_, from, found := strings.Cut(b.said(), "region: "+section+"\n")
	if !found {
		b.Fatalf("there is no section %s", section)
	}
	inside, _, _ := strings.Cut(from, "\nregion: Change it")
	return inside + "\n"
}

// golden compares what is said with the golden file of a page.
func (b *tab) golden(name, got string) {
	b.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	if golden, err := os.ReadFile(path); err != nil || string(golden) != got {
		b.Errorf("%s differs (%v):\n%s", path, err, got)
	}
}

// Who holds a key that is typed, and what is said to one who types none.
func TestReplicas(t *testing.T) {
	b := open(t, serve(t, healthy("orders", 1, 3, 2), trouble()))
	b.at("shop/broken/ring")
	const section = "section[aria-label=Replicas]"
	says := func(text string) {
		b.until(fmt.Sprintf("document.querySelector(%q).textContent.includes(%q)", section, text))
	}
	column := func(i int) string { return fmt.Sprintf("%s form p:nth-of-type(%d) input", section, i+1) }
	pick := func(i int, option string) { // as a person does, so that the page hears of it
		b.run(chromedp.Evaluate(fmt.Sprintf("(() => { const e = document.querySelectorAll('%s select')[%d]; "+
			"e.value = %q; e.dispatchEvent(new Event('change', {bubbles: true})); })()", section, i, option), nil))
	}
	press := func(text string) {
		b.run(chromedp.Click(fmt.Sprintf("//button[text()=%q]", text), chromedp.BySearch))
	}
	pick(0, "orders")
	press("Show who holds it")
	says("3 of 3 nodes hold keyspace orders (NetworkTopologyStrategy {dc1=3})")
	b.golden("replicas-of-a-keyspace", b.saidIn("Replicas"))
	b.run(chromedp.SendKeys(column(1), "bob"+kb.Enter, chromedp.ByQuery))
	says("-5396685590450884643")
	says("LOCAL_QUORUM needs 2 of the 3 replicas")
	b.golden("replicas-of-a-key", b.saidIn("Replicas"))
	if faint, rules := value[[]string](b, tooFaint), b.breaks(); len(faint)+len(rules) > 0 {
		t.Errorf("hard to read %q, breaks %q", faint, rules)
	}
	press("Add a column of the key")
	b.run(chromedp.SendKeys(column(2), "1", chromedp.ByQuery))
	pick(2, "int")
	press("Show who holds it")
	says("5352346720013342270")
	b.refuse()
	b.run(chromedp.SendKeys(column(2), "e3"+kb.Enter, chromedp.ByQuery))
	says(`read column 2 of the key: "1e3" is no int: want a whole number from -2147483648 to 2147483647`)
	pick(0, markup)
	pick(2, "text")
	press("Show who holds it")
	says("keyspace " + markup + ": parse replication")
	if n := value[int](b, "document.images.length"); n > 0 {
		t.Errorf("%d images were made of texts", n)
	}
	b.run(emulation.SetDeviceMetricsOverride(390, 844, 1, true))
	if wide := value[int](b, "document.documentElement.scrollWidth"); wide > 390 {
		t.Errorf("%d px wide on a screen of 390", wide)
	}
}

// Through a Service the page asks for a token, which no script of it can read afterwards.
func TestLogIn(t *testing.T) {
	b := open(t, served(t, healthy("orders", 1, 3, 2)))
	const token = "input[type=password]"
	b.run(chromedp.WaitVisible(token))
	b.golden("log-in", b.said())
	if rules := b.breaks(); len(rules) > 0 {
		t.Errorf("breaks %q", rules)
	}
	b.run(chromedp.SendKeys(token, "made-up"+kb.Enter, chromedp.ByQuery))
	b.until("document.querySelector('form').textContent.includes('Kubernetes does not know the bearer token')")
	b.run(chromedp.SendKeys(token, "token"+kb.Enter, chromedp.ByQuery), chromedp.WaitVisible("table"))
	b.at("shop/orders/ring")
	b.until("document.body.textContent.includes('Live') && " +
		"!document.querySelector('[role=alert], input[type=password]')")
	if kept := value[string](b, "document.cookie + JSON.stringify(sessionStorage) + JSON.stringify(localStorage)"); kept != "{}{}" {
		t.Errorf("scripts can read %s", kept)
	}
	b.run(chromedp.Reload())
	b.until("document.body.textContent.includes('Live')")
}

func TestByKeyboard(t *testing.T) {
	b := open(t, serve(t, healthy("orders", 1, 3, 2)))
	b.at("shop/orders/ring")
	press := func(until string) {
		t.Helper()
		for range 40 {
			b.run(chromedp.KeyEvent(kb.Tab))
			if value[string](b, "document.activeElement.textContent") == until {
				b.run(chromedp.KeyEvent(kb.Enter))
				return
			}
		}
		t.Fatalf("%s is not reached", until)
	}
	press("Plan")
	b.until("location.hash === '#/shop/orders/plan' && document.activeElement.tagName === 'H1'")
	press("Ring")
	b.until("location.hash === '#/shop/orders/ring' && document.title.startsWith('shop/orders')")
	press("orders-dc1-r1-0")
	b.until("location.hash === '#/shop/orders/node/orders-dc1-r1-0'")
	press("Copy")
	b.until("window.copied === 'kubectl logs orders-dc1-r1-0 --container cassandra --namespace shop --tail 100' &&" +
		" document.querySelector('.command [role=status]').textContent === 'copied'")
}

// What changes is shown without a reload, and what is old is called that.
func TestLive(t *testing.T) {
	v := healthy("orders", 1, 3, 2)
	d := serve(t, v)
	b := open(t, d)
	b.at("shop/orders/ring")
	b.run(chromedp.Evaluate("window.same = true", nil))
	v.Nodes[0].Serves, v.Nodes[0].Agent, v.Nodes[0].Unreachable = false, nil, "no route to host"
	d.put(t, v)
	b.until("window.same && document.body.textContent.includes('its agent does not answer: no route to host')")
	d.down.Store(true)
	d.CloseClientConnections()
	b.until("document.body.textContent.includes('What follows is old') && document.querySelector('[role=alert]')")
	d.down.Store(false)
	b.until("window.same && document.body.textContent.includes('Live') && !document.querySelector('[role=alert]')")
}

func TestAThousandNodes(t *testing.T) {
	b := open(t, serve(t, healthy("large", 3, 1000, 16)))
	start := time.Now()
	b.at("shop/large/ring")
	t.Logf("shown after %s", time.Since(start).Round(time.Millisecond))
	if n := value[int](b, "document.querySelectorAll('svg .arc').length"); n != 1000 {
		t.Errorf("%d nodes in the ring", n)
	}
	const rows = "document.querySelectorAll('[aria-label=Nodes] tbody tr').length"
	if n := value[int](b, rows); n != 200 {
		t.Errorf("%d rows at first", n)
	}
	b.run(chromedp.Click("//button[contains(., 'Show all')]", chromedp.BySearch))
	b.until(rows + " === 1000")
	b.run(chromedp.SendKeys("input[type=search]", "dc2/r3", chromedp.ByQuery))
	b.until(rows + " === 111")
	b.run(chromedp.Evaluate("document.querySelector('svg .arc').dispatchEvent("+
		"new MouseEvent('click', {bubbles: true}))", nil))
	b.until("location.hash.startsWith('#/shop/large/node/large-dc')")
}

// The page is small; it needs no browser to say so.
func TestSize(t *testing.T) {
	d := serve(t)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	for _, name := range []string{"", "console.js", "console.css", "icon.svg"} {
		answer, err := http.Get(d.URL + "/console/" + name)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(answer, err)
		}
		_, err = io.Copy(w, answer.Body)
		if _ = answer.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || packed.Len() > 60<<10 {
		t.Errorf("%d bytes, %v", packed.Len(), err)
	}
}

// So is what is sent of a hundred nodes.
func TestSizeOfAView(t *testing.T) {
	text, err := json.Marshal(shown(hundred()))
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil || w.Close() != nil || packed.Len() > 200_000 {
		t.Errorf("%d bytes, %v", packed.Len(), err)
	}
	t.Logf("%d bytes, compressed %d", len(text), packed.Len())
}
