package oshost

func clockSync() (synced bool, maxError, estError float64, err error) {
	s, err := (&liveKernel{}).clock()
	return s.Synced, s.MaxError, s.EstError, err
}
