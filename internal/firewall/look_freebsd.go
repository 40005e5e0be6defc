package firewall

import "context"

// Privilege says who may change filters here.
const Privilege = "it needs root"

func look(ctx context.Context, s System) (*Host, error) { return lookFreeBSD(ctx, s) }
