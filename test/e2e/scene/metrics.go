package scene

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"helenus.io/helenus/internal/core/layout"
)

// operatorMetrics is the port of the operator's metrics.
const operatorMetrics = 8080

// Pages are the metrics of every pod of operators and of the ring that answers now, by its
// namespace and name.
func (r *Ring) Pages(ctx context.Context) (map[[2]string][]byte, error) {
	out := map[[2]string][]byte{}
	pods, err := r.operators(ctx)
	if err != nil {
		return nil, fmt.Errorf("list operators: %w", err)
	}
	for _, p := range pods {
		if page, err := r.page(ctx, p.Namespace, p.Name, operatorMetrics); err == nil {
			out[[2]string{p.Namespace, p.Name}] = page
		}
	}
	for _, n := range r.Nodes(ctx) {
		if page, err := r.page(ctx, n.Namespace, n.Name, layout.MetricsPort); err == nil {
			out[[2]string{n.Namespace, n.Name}] = page
		}
	}
	return out, nil
}

func (r *Ring) page(ctx context.Context, namespace, pod string, port uint16) (page []byte, err error) {
	const timeout = 15 * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = r.scraping(ctx, namespace, pod, port, func(scrape func() ([]byte, error)) error {
		page, err = scrape()
		return err
	})
	return page, err
}

// Scrapes fetches the metrics of a node so often, one page after the other, and says how long each
// took, and what is in the last one.
func (r *Ring) Scrapes(ctx context.Context, node string, often int) (took []time.Duration, page []byte, err error) {
	err = r.scraping(ctx, r.Namespace, node, layout.MetricsPort, func(scrape func() ([]byte, error)) error {
		for range often {
			began := time.Now()
			if page, err = scrape(); err != nil {
				return err
			}
			took = append(took, time.Since(began))
		}
		return nil
	})
	return took, page, err
}

// scraping forwards a port of a pod for as long as its metrics are fetched.
func (r *Ring) scraping(ctx context.Context, namespace, pod string, port uint16,
	use func(scrape func() ([]byte, error)) error) error {
	forward, err := r.Kubernetes.Forward(ctx, namespace, pod, port)
	if err != nil {
		return fmt.Errorf("scrape %s: %w", pod, err)
	}
	defer forward.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return use(func() ([]byte, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet,
			"http://"+forward.Address.String()+"/metrics", nil)
		if err != nil {
			return nil, fmt.Errorf("scrape %s: %w", pod, err)
		}
		answer, err := client.Do(request)
		if err != nil {
			return nil, fmt.Errorf("scrape %s: %w", pod, err)
		}
		defer answer.Body.Close() //nolint:errcheck // it was only read
		page, err := io.ReadAll(answer.Body)
		if err == nil && answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s", answer.Status)
		}
		if err != nil {
			return nil, fmt.Errorf("scrape %s: %w", pod, err)
		}
		return page, nil
	})
}
