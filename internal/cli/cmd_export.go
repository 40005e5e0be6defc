package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/fullbore-net/fullbore/internal/store"
)

const exportLong = `Print kept measurements for other programs: whole, one JSON object a line (record, document
and, of imported ones, the file that they came from), or with --csv one row for each figure.

Without an ID all that fit the filters are printed, the oldest first. What is printed as JSON
lines can be imported elsewhere without loss: fullbore import FILE.`

func newExportCmd(e *env) *cobra.Command {
	var o filterOptions
	var asCSV bool
	cmd := &cobra.Command{
		Use:     "export [ID…]",
		Short:   "Print kept measurements for other programs: JSON lines, CSV",
		Long:    exportLong,
		Example: "  fullbore export > history.jsonl\n  fullbore export --label uplink --since 30d --csv > uplink.csv\n  fullbore export last | jq .document.summary",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && o.given() {
				return usagef("export: name runs, or filter them, not both")
			}
			return e.runExport(cmd.Context(), &o, args, asCSV)
		},
	}
	o.addFlags(cmd.Flags(), 0)
	cmd.Flags().BoolVar(&asCSV, "csv", false, "one row for each figure instead of whole documents")
	return cmd
}

func (e *env) runExport(ctx context.Context, o *filterOptions, words []string, asCSV bool) error {
	s, err := e.history(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	var ids []string
	var records []store.Record
	for _, w := range words {
		entry, err := find(ctx, s, w)
		if err != nil {
			return err
		}
		records = append(records, entry.Record)
	}
	if len(words) == 0 {
		if records, err = o.list(ctx, s, e.Now()); err != nil {
			return err
		}
	}
	if asCSV {
		return writeRecords(e.Out, records)
	}
	for i := range records {
		ids = append(ids, records[i].ID)
	}
	enc := json.NewEncoder(e.Out)
	enc.SetEscapeHTML(false)
	for _, id := range ids { // one at a time: a history may be larger than the memory
		entry, err := s.Get(ctx, id)
		if err != nil {
			return err
		}
		doc, err := json.Marshal(entry.Document())
		if err != nil {
			return err
		}
		if err := enc.Encode(keptLine{Record: entry.Record, Document: doc, Original: entry.Original}); err != nil {
			return err
		}
	}
	return nil
}
