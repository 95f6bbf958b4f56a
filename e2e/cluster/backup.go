package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// BackUpEtcd copies etcd's data for RestoreEtcd and replaces an earlier copy. It kills and restarts etcd, so that the
// copy is consistent. The API server continues.
func (c *Cluster) BackUpEtcd(ctx context.Context) error {
	if err := c.KillEtcd(); err != nil {
		return err
	}
	if err := c.copyData(etcdBackup, etcdData); err != nil {
		return fmt.Errorf("cluster: back up etcd: %w", err)
	}
	return c.StartEtcd(ctx)
}

// RestoreEtcd kills both servers, restores the copy of etcd's data, and starts both again; flags are those of
// StartAPIServer. Revisions decrease, as after etcdutl snapshot restore without --bump-revision.
func (c *Cluster) RestoreEtcd(ctx context.Context, flags ...string) error {
	for _, kill := range []func() error{c.KillAPIServer, c.KillEtcd} { // no API server may write to the restored data
		if err := kill(); err != nil {
			return err
		}
	}
	if err := c.copyData(etcdData, etcdBackup); err != nil {
		return fmt.Errorf("cluster: restore etcd: %w", err)
	}
	if err := c.StartEtcd(ctx); err != nil {
		return err
	}
	return c.StartAPIServer(ctx, flags...)
}

// copyData replaces a folder in the working folder by a copy of another one.
func (c *Cluster) copyData(to, from string) error {
	to, from = filepath.Join(c.dir, to), filepath.Join(c.dir, from)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}
