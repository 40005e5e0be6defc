package service

import "context"

func text(s Spec) (file, contents string, steps []string, err error) { return launchdText(s) }

func (m Manager) install(ctx context.Context, s Spec) ([]string, error) {
	return m.launchdInstall(ctx, s)
}

func (m Manager) uninstall(ctx context.Context) ([]string, error) { return m.launchdUninstall(ctx) }
