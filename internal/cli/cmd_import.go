package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullbore-net/fullbore/internal/importer"
	"github.com/fullbore-net/fullbore/internal/store"
)

const importLong = `Read results of other programs into the history, so that they can be listed, shown and
compared with new ones:

  iperf3   what it prints (also -V), the document of -J, the events of --json-stream
  NTTTCP   of Linux: what it prints, its log (-O), XML (-x), JSON (-j);
           of Windows: what it prints, and its XML (-xml)
  fullbore documents of --json, --json-stream and fullbore export

What a file is, is found out by itself; "-" is standard input. The file is kept with what was
read from it (fullbore show ID --original). A text has rounded figures: they are kept so that they
round to every figure shown again. A text that does not say when it was made gets the time of
its file. A file that is there already is not imported again.`

// importOptions are the words of `fullbore import`.
type importOptions struct {
	label, note, host string
	tags              []string
}

func (o *importOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.label, "label", "", "label of what is imported, e.g. a link")
	f.StringVar(&o.note, "note", "", "a remark that is kept with it")
	f.StringVar(&o.host, "host", "", "the other end, where the files do not say it")
	f.StringArrayVar(&o.tags, "tag", nil, "a word to find it by (repeatable)")
}

func newImportCmd(e *env) *cobra.Command {
	o := &importOptions{}
	cmd := &cobra.Command{
		Use:     "import FILE…",
		Short:   "Read results of iperf3, NTTTCP or fullbore into the history",
		Long:    importLong,
		Example: "  fullbore import old/*.json --label uplink\n  iperf3 -c 192.0.2.2 -J | fullbore import - --label uplink\n  fullbore import history.jsonl",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return e.runImport(cmd.Context(), o, args) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (e *env) runImport(ctx context.Context, o *importOptions, files []string) error {
	for _, t := range o.tags {
		if err := checkTag(t); err != nil {
			return err
		}
	}
	s, err := e.history(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	var errs []error
	for _, name := range files {
		if err := e.importFile(ctx, s, o, name); err != nil {
			e.printError(err)
			errs = append(errs, &codeError{code: exitCode(err)})
		}
	}
	return worst(errs)
}

func (e *env) importFile(ctx context.Context, s store.Store, o *importOptions, name string) error {
	data, err := e.readFile(name)
	if err != nil {
		return err
	}
	docs, err := importer.Decode(name, data)
	if err != nil {
		return usagef("%v", err)
	}
	when := e.Now()
	if st, err := os.Stat(name); err == nil {
		when = st.ModTime()
	}
	for i, entry := range entriesOf(docs, data) {
		o.apply(entry, docs[i], data, i, when)
		switch err := s.Add(ctx, entry); {
		case errors.Is(err, store.ErrExists):
			fmt.Fprintf(e.Out, "%s: %s is there already\n", name, entry.Record.ID)
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		default:
			fmt.Fprintf(e.Out, "%s: %s  %s  %s\n", name, entry.Record.ID, whatOf(&entry.Record), figuresText(&entry.Record))
		}
	}
	return nil
}

// apply puts the user's words into an entry and gives it an ID that follows from the file, so that
// it cannot be imported twice.
func (o *importOptions) apply(entry *store.Entry, d importer.Document, data []byte, n int, when time.Time) {
	r := &entry.Record
	if r.Started.IsZero() {
		r.Started = when.UTC().Truncate(time.Millisecond)
	}
	if d.Run != nil && d.Run.ID == "" && d.Kept == nil {
		r.ID = store.FileID(data, n, r.Started)
	}
	if o.label != "" {
		r.Label = o.label
		if entry.Run != nil {
			entry.Run.Label = o.label
		}
		if entry.Report != nil {
			entry.Report.Label = o.label
		}
	}
	if o.note != "" {
		r.Note = o.note
	}
	if o.host != "" && r.Host == "" {
		r.Host = o.host
	}
	r.Tags = store.SortTags(append(r.Tags, o.tags...))
}
