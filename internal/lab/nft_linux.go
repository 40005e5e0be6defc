package lab

import (
	"context"
	"encoding/json"
	"fmt"
)

// NFT loads rules in nft(8)'s own language into the namespace, all or none.
func (ns *Namespace) NFT(ctx context.Context, rules string) error {
	_, err := ns.must(ctx, rules, "nft", "-f", "-")
	return err
}

// NFTCounter is a rule's counter, or a named one.
type NFTCounter struct {
	Family, Table string
	Chain         string // of a rule
	Name          string // of a named counter, or the rule's comment
	Packets       int64
	Bytes         int64
}

// NFTCounters reads all counters of the namespace's rules, in the order of the rules.
func (ns *Namespace) NFTCounters(ctx context.Context) ([]NFTCounter, error) {
	out, err := ns.must(ctx, "", "nft", "-j", "list", "ruleset")
	if err != nil {
		return nil, err
	}
	return parseNFTCounters([]byte(out))
}

// NFTCounter returns the counter whose name, or whose rule's comment, is name.
func (ns *Namespace) NFTCounter(ctx context.Context, name string) (NFTCounter, error) {
	all, err := ns.NFTCounters(ctx)
	if err != nil {
		return NFTCounter{}, err
	}
	for _, c := range all {
		if c.Name == name {
			return c, nil
		}
	}
	return NFTCounter{}, fmt.Errorf("lab: %s: no nft counter is called %q", ns.Role, name)
}

// parseNFTCounters reads libnftables-json(5).
func parseNFTCounters(doc []byte) ([]NFTCounter, error) {
	type counts struct {
		Packets int64 `json:"packets"`
		Bytes   int64 `json:"bytes"`
	}
	var list struct {
		Objects []struct {
			Rule *struct {
				Family, Table, Chain, Comment string
				Expr                          []map[string]json.RawMessage
			}
			Counter *struct {
				Family, Table, Name string
				counts
			}
		} `json:"nftables"`
	}
	if err := json.Unmarshal(doc, &list); err != nil {
		return nil, fmt.Errorf("lab: read nft's answer: %w", err)
	}
	var out []NFTCounter
	for _, o := range list.Objects {
		if c := o.Counter; c != nil {
			out = append(out, NFTCounter{Family: c.Family, Table: c.Table, Name: c.Name, Packets: c.Packets, Bytes: c.Bytes})
		}
		if o.Rule == nil {
			continue
		}
		for _, e := range o.Rule.Expr {
			raw, ok := e["counter"]
			if !ok {
				continue
			}
			var c counts
			// A reference to a named counter is a string; that one is listed by itself.
			if json.Unmarshal(raw, &c) != nil {
				continue
			}
			out = append(out, NFTCounter{
				Family: o.Rule.Family, Table: o.Rule.Table, Chain: o.Rule.Chain, Name: o.Rule.Comment,
				Packets: c.Packets, Bytes: c.Bytes,
			})
		}
	}
	return out, nil
}
