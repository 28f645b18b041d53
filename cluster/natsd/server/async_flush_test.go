// What a start believes of flushed.db (async-flush.patch): `make natsd` puts this beside the server's sources, and
// tests/cluster/test_natsd.py runs it there.

package server

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func openAsync(t *testing.T, dir string) *fileStore {
	t.Helper()
	fs, err := newFileStore(
		FileStoreConfig{StoreDir: dir, SyncAlways: true, SyncOnFlush: true, AsyncFlush: true},
		StreamConfig{Name: "S", Storage: FileStorage, Subjects: []string{"s"}, Replicas: 3},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fs.Stop() })
	return fs
}

func storeMsgs(t *testing.T, fs *fileStore, count int) {
	t.Helper()
	for i := range count {
		if _, _, err := fs.StoreMsg("s", nil, fmt.Appendf(nil, "%064d", i), 0); err != nil {
			t.Fatal(err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What a server that is killed leaves: the files as they are, without what waits in memory, nor its state file.
func killed(t *testing.T, fs *fileStore) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "left")
	must(t, os.MkdirAll(filepath.Join(dir, msgDir), 0o700))
	for _, pattern := range []string{"*.*", filepath.Join(msgDir, "*.blk")} {
		found, err := filepath.Glob(filepath.Join(fs.fcfg.StoreDir, pattern))
		must(t, err)
		for _, name := range found {
			octets, err := os.ReadFile(name)
			must(t, err)
			to := filepath.Join(filepath.Dir(filepath.Join(dir, pattern)), filepath.Base(name))
			must(t, os.WriteFile(to, octets, 0o600))
		}
	}
	return dir
}

func lastBlock(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, msgDir, "*.blk"))
	must(t, err)
	if len(found) == 0 {
		t.Fatal("no block")
	}
	return found[len(found)-1]
}

func state(fs *fileStore) StreamState {
	var state StreamState
	fs.FastState(&state)
	return state
}

func expectLast(t *testing.T, dir string, last uint64) {
	t.Helper()
	if found := state(openAsync(t, dir)); found.LastSeq != last {
		t.Fatalf("last is %d, not %d", found.LastSeq, last)
	}
}

func TestWhatWasRemovedIsNotForgotten(t *testing.T) {
	fs := openAsync(t, t.TempDir())
	storeMsgs(t, fs, 100)
	must(t, fs.FlushAllPending())
	_, err := fs.Purge()
	must(t, err)
	dir := killed(t, fs)
	must(t, os.Truncate(lastBlock(t, dir), 0))
	expectLast(t, dir, 100)
	expectLast(t, dir, 100) // the second start believes what the first one has written
}

func TestWhatIsCutOffIsToComeAgain(t *testing.T) {
	for _, seq := range []uint64{0, 50} {
		fs := openAsync(t, t.TempDir())
		storeMsgs(t, fs, 100)
		must(t, fs.FlushAllPending())
		must(t, fs.Truncate(seq))
		expectLast(t, killed(t, fs), seq)
		storeMsgs(t, fs, 10) // as the log is applied again
		if last := state(fs).LastSeq; last != seq+10 {
			t.Fatalf("last is %d", last)
		}
		must(t, fs.FlushAllPending())
		_, err := fs.Purge()
		must(t, err)
		dir := killed(t, fs)
		must(t, os.Truncate(lastBlock(t, dir), 0))
		expectLast(t, dir, seq+10)
	}
}

func TestWhatIsDamagedIsToComeAgain(t *testing.T) {
	fs := openAsync(t, t.TempDir())
	storeMsgs(t, fs, 100)
	must(t, fs.FlushAllPending())
	dir := killed(t, fs)
	block := lastBlock(t, dir)
	octets, err := os.ReadFile(block)
	must(t, err)
	octets[len(octets)/2] ^= 1
	must(t, os.WriteFile(block, octets, 0o600))
	expectLast(t, dir, 50)
	expectLast(t, dir, 50) // the damage is cut off by the first start
}

func TestWhatWasNotOnDiskYetDoesNotCount(t *testing.T) {
	fs := openAsync(t, t.TempDir())
	storeMsgs(t, fs, 100)
	must(t, fs.FlushAllPending())
	storeMsgs(t, fs, 10)
	fs.mu.RLock()
	err := fs.lmb.flushPendingMsgs()
	fs.mu.RUnlock()
	must(t, err)
	dir := killed(t, fs)
	block := lastBlock(t, dir)
	info, err := os.Stat(block)
	must(t, err)
	must(t, os.Truncate(block, info.Size()-10)) // torn by a power cut
	found := openAsync(t, dir)
	if last := state(found).LastSeq; last != 109 {
		t.Fatalf("last is %d", last)
	}
	if found.flushedSeq != 100 {
		t.Fatalf("believed is %d", found.flushedSeq)
	}
}
