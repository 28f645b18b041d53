// What damage a start survives (damaged-files.patch, async-flush.patch).

package server

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Changes octets of the first record of a block that has this in it.
func damage(t *testing.T, block, what string, change func(record []byte)) {
	t.Helper()
	octets, err := os.ReadFile(block)
	must(t, err)
	at := 0
	for at < len(octets) {
		size := int(binary.LittleEndian.Uint32(octets[at:]) &^ hbit)
		if record := octets[at : at+size]; bytes.Contains(record, []byte(what)) {
			change(record)
			must(t, os.WriteFile(block, octets, 0o600))
			return
		}
		at += size
	}
	t.Fatalf("no %q", what)
}

// The length of its headers, behind the subject, is in no checksum.
func longerHeaders(record []byte) { record[msgHdrSize+len("s")+2] ^= 1 }

func storeWithHeaders(t *testing.T, fs *fileStore, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		_, _, err := fs.StoreMsg("s", genHeader(nil, JSMsgId, body), []byte(body), 0)
		must(t, err)
	}
}

func TestWhatHasTooLongHeadersIsDamaged(t *testing.T) {
	fs := openAsync(t, t.TempDir())
	storeWithHeaders(t, fs, "first", "second", "third")
	_, err := fs.RemoveMsg(2) // its tombstone has a start look at it
	must(t, err)
	must(t, fs.FlushAllPending())
	dir := killed(t, fs)
	damage(t, lastBlock(t, dir), "second", longerHeaders)
	expectLast(t, dir, 1) // the others come from another server
}

func TestWhatIsFoundDamagedLaterIsToComeAgain(t *testing.T) {
	fs := openAsync(t, t.TempDir())
	storeWithHeaders(t, fs, "first", "second", "third")
	must(t, fs.FlushAllPending())
	dir := fs.fcfg.StoreDir
	must(t, fs.Stop()) // with a state file, so that a start does not look at the messages
	damage(t, lastBlock(t, dir), "second", func(record []byte) { record[4] ^= 1 << 6 })
	fs = openAsync(t, dir)
	fs.LoadMsg(3, nil)
	for range 100 {
		if state(fs).LastSeq == 1 {
			expectLast(t, killed(t, fs), 1)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("not found")
}

func openWithTTL(t *testing.T, dir string) (*fileStore, error) {
	t.Helper()
	fs, err := newFileStore(
		FileStoreConfig{StoreDir: dir, SyncAlways: true, SyncOnFlush: true, AsyncFlush: true},
		StreamConfig{Name: "S", Storage: FileStorage, Subjects: []string{"s"}, Replicas: 3, AllowMsgTTL: true},
	)
	if err == nil {
		t.Cleanup(func() { fs.Stop() })
	}
	return fs, err
}

func TestWhatCanNotBeReadDoesNotRemoveItsStream(t *testing.T) {
	dir := t.TempDir()
	fs, err := openWithTTL(t, dir)
	must(t, err)
	for _, body := range []string{"first", "second", "third"} {
		_, _, err := fs.StoreMsg("s", genHeader(nil, JSMessageTTL, "1000s"), []byte(body), 1000)
		must(t, err)
	}
	must(t, fs.Stop())
	must(t, os.Remove(filepath.Join(dir, msgDir, ttlStreamStateFile))) // so that each message is looked at
	damage(t, lastBlock(t, dir), "second", func(record []byte) { record[len(record)-recordHashSize-1] ^= 1 })
	fs, err = openWithTTL(t, dir)
	must(t, err)
	for seq, isThere := range map[uint64]bool{1: true, 2: false, 3: true} {
		if _, err := fs.LoadMsg(seq, nil); (err == nil) != isThere {
			t.Fatalf("%d: %v", seq, err)
		}
	}
}

func TestWhatCanNotBeKnownIsNotWrittenTo(t *testing.T) {
	fs := openAsync(t, t.TempDir())
	storeMsgs(t, fs, 3)
	must(t, fs.FlushAllPending())
	dir := killed(t, fs)
	name := filepath.Join(dir, flushedSeqFile)
	must(t, os.Remove(name))
	must(t, os.Mkdir(name, 0o700)) // can not be read
	fs = openAsync(t, dir)
	if _, err := fs.LoadMsg(3, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fs.StoreMsg("s", nil, nil, 0); err == nil {
		t.Fatal("stored")
	}
}

// Is done in time, and without all memory.
func inTime(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { do(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
		t.Fatal("takes too long")
	}
}

func TestWhatHasAWildSequenceIsNotCountedUpTo(t *testing.T) {
	fs := openAsync(t, t.TempDir())
	storeWithHeaders(t, fs, "first", "second", "third")
	dir := fs.fcfg.StoreDir
	must(t, fs.Stop()) // with a state file, so that a start does not look at the messages
	damage(t, lastBlock(t, dir), "second", func(record []byte) { record[4+3] ^= 1 << 4 })
	fs = openAsync(t, dir)
	inTime(t, func() { fs.LoadMsg(3, nil) })
}

func TestWhatCountsMoreThanItHasIsNoConsumerState(t *testing.T) {
	for name, state := range map[string]*ConsumerState{
		"pending":     {Pending: map[uint64]*Pending{2: {2, time.Now().UnixNano()}}},
		"redelivered": {Redelivered: map[uint64]uint64{2: 1}},
	} {
		state.Delivered, state.AckFloor = SequencePair{2, 2}, SequencePair{1, 1}
		octets := encodeConsumerState(state)
		at := hdrLen + 4 // behind the four sequences
		if name == "redelivered" {
			at++ // nothing is pending
		}
		wild := binary.AppendUvarint(append([]byte(nil), octets[:at]...), 1<<34)
		wild = append(wild, octets[at+1:]...)
		inTime(t, func() {
			if _, err := decodeConsumerState(wild); err != errCorruptState {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
