package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// table prints rows in columns, all with the same number of cells. The first row is the heading.
func table(w io.Writer, rows [][]string) {
	var aligned strings.Builder
	t := tabwriter.NewWriter(&aligned, 0, 4, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush() // a strings.Builder takes everything
	for line := range strings.Lines(aligned.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
}

// orDash stands for what is not known.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// oneLine makes a text fit a cell: what programs say may have line breaks and tabs in it, and must
// not be able to steer a terminal.
func oneLine(text string) string {
	printable := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(printable), " ")
}

// age is how long ago something was, as kubectl says it. Clocks differ: what is in the future is
// now.
func age(now, then time.Time) string {
	if then.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(0, now.Sub(then)))
}

func yesNo(yes bool) string {
	if yes {
		return "Yes"
	}
	return "No"
}
