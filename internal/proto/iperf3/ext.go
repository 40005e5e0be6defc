package iperf3

import (
	"github.com/fullbore-net/fullbore/internal/plan"
	"github.com/fullbore-net/fullbore/internal/proto/ext"
)

// What of the extension (package ext; docs/wire-extension.md) is iperf3's own.

// features are what this program offers and has.
func features() []string {
	return []string{
		ext.FeatureEvents, ext.FeatureClient, ext.FeatureQueue, ext.FeatureIndex, ext.FeatureUDP, ext.FeatureToken,
		ext.FeatureExact, ext.FeatureProbe, ext.FeatureClass, ext.FeatureSteer, ext.FeaturePing, ext.FeatureMTU, ext.FeatureRamp,
		ext.FeatureSwap,
	}
}

// ParallelOpen is how many indexed streams a client opens at a time.
const ParallelOpen = 64

// decodeClientHello reads the value of "fullbore" in the parameters; nil when it makes no
// sense, which leaves plain iperf3.
func decodeClientHello(raw []byte) *ext.ClientHello {
	return ext.DecodeClientHello(raw, plan.MaxDuration, plan.MaxOmit)
}
