// A fleet of Go's clientv3, which speaks the lines of fleet/protocol.ts: the same work as the Node fleets do.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/etcd/clientv3"
	"google.golang.org/grpc"
)

const (
	directory  = "/services/web/"
	value      = "http://10.0.0.1:8080"
	opening    = 25
	patience   = 60 * time.Second
	probeName  = "probe-0"
	dialLimit  = 30 * time.Second
	maxMessage = 64 * 1024 * 1024
)

type order struct {
	Op         string  `json:"op"`
	N          int     `json:"n"`
	Endpoint   string  `json:"endpoint"`
	Namespace  string  `json:"namespace"`
	TTL        int64   `json:"ttl"`
	Phase      string  `json:"phase"`
	SpreadMs   float64 `json:"spreadMs"`
	Count      int     `json:"count"`
	IntervalMs float64 `json:"intervalMs"`
	QuietMs    float64 `json:"quietMs"`
}

// goal is what every member's list should come to; an empty generation stands for any.
type goal struct {
	size       int
	generation string
}

var (
	bytesRead int64
	sockets   int64
)

type countingConn struct {
	net.Conn
	once sync.Once
}

func (c *countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	atomic.AddInt64(&bytesRead, int64(n))
	return n, err
}

func (c *countingConn) Close() error {
	c.once.Do(func() { atomic.AddInt64(&sockets, -1) })
	return c.Conn.Close()
}

func dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		return nil, err
	}
	atomic.AddInt64(&sockets, 1)
	return &countingConn{Conn: conn}, nil
}

type member struct {
	client *clientv3.Client
	lease  clientv3.LeaseID
	prefix string
	key    string

	mutex    sync.Mutex
	names    map[string]bool
	sizes    map[string]int
	messages int
	events   int
}

func generationOf(name string) string {
	if i := strings.IndexByte(name, '-'); i >= 0 {
		return name[:i]
	}
	return name
}

func (m *member) add(name string) {
	if !m.names[name] {
		m.names[name] = true
		m.sizes[generationOf(name)]++
	}
}

func (m *member) remove(name string) {
	if m.names[name] {
		delete(m.names, name)
		m.sizes[generationOf(name)]--
	}
}

// holds needs the mutex.
func (m *member) holds(g goal) bool {
	return len(m.names) == g.size && (g.generation == "" || m.sizes[g.generation] == g.size)
}

func (m *member) join(ctx context.Context, name string) error {
	m.key = m.prefix + name
	_, err := m.client.Put(ctx, m.key, value, clientv3.WithLease(m.lease))
	return err
}

func (m *member) leave(ctx context.Context) error {
	_, err := m.client.Delete(ctx, m.key)
	return err
}

type fleet struct {
	ctx        context.Context
	members    []*member
	changer    *member
	generation int
	joined     bool
	quietFor   time.Duration

	mutex   sync.Mutex
	goal    *goal
	missing map[*member]bool
	// When each member came to the goal, in order.
	at      []time.Time
	reached chan []time.Time
}

func openMember(ctx context.Context, o order) (*member, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:          []string{o.Endpoint},
		DialTimeout:        dialLimit,
		MaxCallRecvMsgSize: maxMessage,
		DialOptions:        []grpc.DialOption{grpc.WithBlock(), grpc.WithContextDialer(dial)},
	})
	if err != nil {
		return nil, err
	}
	lease, err := client.Grant(ctx, o.TTL)
	if err != nil {
		return nil, err
	}
	alive, err := client.KeepAlive(ctx, lease.ID)
	if err != nil {
		return nil, err
	}
	go func() {
		for range alive {
		}
	}()
	prefix := o.Namespace + directory
	return &member{client: client, lease: lease.ID, prefix: prefix, names: map[string]bool{}, sizes: map[string]int{}}, nil
}

func (f *fleet) watch(m *member) error {
	listed, err := m.client.Get(f.ctx, m.prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	for _, kv := range listed.Kvs {
		m.add(strings.TrimPrefix(string(kv.Key), m.prefix))
	}
	responses := m.client.Watch(f.ctx, m.prefix, clientv3.WithPrefix(), clientv3.WithRev(listed.Header.Revision+1), clientv3.WithCreatedNotify())
	if _, ok := <-responses; !ok {
		return fmt.Errorf("the watch was refused")
	}
	go func() {
		for response := range responses {
			m.mutex.Lock()
			m.messages++
			m.events += len(response.Events)
			for _, event := range response.Events {
				name := strings.TrimPrefix(string(event.Kv.Key), m.prefix)
				if event.Type == clientv3.EventTypeDelete {
					m.remove(name)
				} else {
					m.add(name)
				}
			}
			m.mutex.Unlock()
			f.changed(m)
		}
	}()
	return nil
}

func (f *fleet) changed(m *member) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.goal == nil || !f.missing[m] {
		return
	}
	m.mutex.Lock()
	holds := m.holds(*f.goal)
	m.mutex.Unlock()
	if !holds {
		return
	}
	delete(f.missing, m)
	f.at = append(f.at, time.Now())
	if len(f.missing) == 0 {
		f.goal = nil
		f.reached <- f.at
	}
}

func (f *fleet) expect(g goal) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.goal = &g
	f.at = make([]time.Time, 0, len(f.members))
	f.missing = map[*member]bool{}
	for _, m := range f.members {
		f.missing[m] = true
	}
}

func (f *fleet) await() ([]time.Time, error) {
	select {
	case at := <-f.reached:
		return at, nil
	case <-time.After(patience):
		return nil, fmt.Errorf("%d members did not come to the goal", len(f.missing))
	}
}

func each(n int, do func(i int) error) error {
	errors := make(chan error, n)
	for i := 0; i < n; i++ {
		go func(i int) { errors <- do(i) }(i)
	}
	var first error
	for i := 0; i < n; i++ {
		if err := <-errors; err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (f *fleet) open(o order) (interface{}, error) {
	f.members = make([]*member, o.N)
	f.quietFor = time.Duration(o.QuietMs * float64(time.Millisecond))
	for start := 0; start < o.N; start += opening {
		size := o.N - start
		if size > opening {
			size = opening
		}
		err := each(size, func(i int) error {
			m, err := openMember(f.ctx, o)
			if err != nil {
				return err
			}
			f.members[start+i] = m
			return f.watch(m)
		})
		if err != nil {
			return nil, err
		}
	}
	changer, err := openMember(f.ctx, o)
	f.changer = changer
	return map[string]interface{}{"sockets": atomic.LoadInt64(&sockets)}, err
}

func cpuMs() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6
}

func (f *fleet) heard() (messages []int, events []int) {
	for _, m := range f.members {
		m.mutex.Lock()
		messages = append(messages, m.messages)
		events = append(events, m.events)
		m.mutex.Unlock()
	}
	return messages, events
}

func sum(values []int) int {
	total := 0
	for _, v := range values {
		total += v
	}
	return total
}

func (f *fleet) quiet() {
	for before := -1; ; {
		messages, _ := f.heard()
		now := sum(messages)
		if now == before {
			return
		}
		before = now
		time.Sleep(f.quietFor)
	}
}

func (f *fleet) checksums() []string {
	different := map[string]bool{}
	for _, m := range f.members {
		m.mutex.Lock()
		names := make([]string, 0, len(m.names))
		for name := range m.names {
			names = append(names, name)
		}
		m.mutex.Unlock()
		sort.Strings(names)
		digest := sha256.Sum256([]byte(strings.Join(names, "\n")))
		different[hex.EncodeToString(digest[:])] = true
	}
	sums := []string{}
	for s := range different {
		sums = append(sums, s)
	}
	return sums
}

func minus(after, before []int) []int {
	difference := make([]int, len(after))
	for i := range after {
		difference[i] = after[i] - before[i]
	}
	return difference
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (f *fleet) storm(o order) (interface{}, error) {
	messagesBefore, eventsBefore := f.heard()
	bytesBefore := atomic.LoadInt64(&bytesRead)
	cpuBefore := cpuMs()
	if o.Phase != "leave" {
		f.generation++
	}
	generation := fmt.Sprintf("g%04d", f.generation)
	wanted := goal{size: len(f.members), generation: generation}
	if o.Phase == "leave" {
		wanted.size = 0
	}
	f.expect(wanted)
	start := time.Now()
	lastCall := start
	done := make(chan error, len(f.members))
	for i, m := range f.members {
		if o.SpreadMs > 0 {
			at := start.Add(time.Duration(o.SpreadMs * float64(i) / float64(len(f.members)) * float64(time.Millisecond)))
			time.Sleep(time.Until(at))
			lastCall = time.Now()
		}
		go func(i int, m *member) {
			var err error
			if o.Phase != "join" {
				err = m.leave(f.ctx)
			}
			if err == nil && o.Phase != "leave" {
				err = m.join(f.ctx, fmt.Sprintf("%s-%05d", generation, i))
			}
			done <- err
		}(i, m)
	}
	at, err := f.await()
	if err != nil {
		return nil, err
	}
	end := at[len(at)-1]
	for range f.members {
		if err := <-done; err != nil {
			return nil, err
		}
	}
	f.joined = o.Phase != "leave"
	f.quiet()
	messages, events := f.heard()
	return map[string]interface{}{
		"ms":             ms(end.Sub(lastCall)),
		"messages":       minus(messages, messagesBefore),
		"events":         minus(events, eventsBefore),
		"masterMessages": 0,
		"bytesRead":      atomic.LoadInt64(&bytesRead) - bytesBefore,
		"cpuMs":          cpuMs() - cpuBefore,
		"checksums":      f.checksums(),
	}, nil
}

func (f *fleet) change(joins bool) ([]time.Time, error) {
	size := 0
	if f.joined {
		size = len(f.members)
	}
	if joins {
		size++
	}
	f.expect(goal{size: size})
	var err error
	if joins {
		err = f.changer.join(f.ctx, probeName)
	} else {
		err = f.changer.leave(f.ctx)
	}
	if err != nil {
		return nil, err
	}
	return f.await()
}

func percentiles(values []float64) map[string]float64 {
	sort.Float64s(values)
	at := func(q float64) float64 { return values[int(float64(len(values)-1)*q)] }
	return map[string]float64{"p50": at(0.5), "p99": at(0.99), "p999": at(0.999)}
}

func (f *fleet) changes(o order) (interface{}, error) {
	interval := time.Duration(o.IntervalMs * float64(time.Millisecond))
	latencies := []float64{}
	watchers := []float64{}
	due := time.Now().Add(interval)
	for i := 0; i < o.Count; i, due = i+1, due.Add(interval) {
		time.Sleep(time.Until(due))
		at, err := f.change(i%2 == 0)
		if err != nil {
			return nil, err
		}
		latencies = append(latencies, ms(at[len(at)-1].Sub(due)))
		for _, one := range at {
			watchers = append(watchers, ms(one.Sub(due)))
		}
	}
	if o.Count%2 == 1 {
		if _, err := f.change(false); err != nil {
			return nil, err
		}
	}
	f.quiet()
	return map[string]interface{}{"latenciesMs": latencies, "watcherMs": percentiles(watchers), "checksums": f.checksums()}, nil
}

func (f *fleet) close() (interface{}, error) {
	all := append([]*member{f.changer}, f.members...)
	err := each(len(all), func(i int) error {
		if _, err := all[i].client.Revoke(f.ctx, all[i].lease); err != nil {
			return err
		}
		return all[i].client.Close()
	})
	return map[string]interface{}{}, err
}

func (f *fleet) obey(o order) (interface{}, error) {
	switch o.Op {
	case "open":
		return f.open(o)
	case "storm":
		return f.storm(o)
	case "changes":
		return f.changes(o)
	case "close":
		return f.close()
	}
	return nil, fmt.Errorf("no such order: %s", o.Op)
}

func main() {
	f := &fleet{ctx: context.Background(), reached: make(chan []time.Time, 1)}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var line struct {
			ID    int   `json:"id"`
			Order order `json:"order"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		answer := map[string]interface{}{"id": line.ID}
		if result, err := f.obey(line.Order); err != nil {
			answer["error"] = err.Error()
		} else {
			answer["result"] = result
		}
		text, _ := json.Marshal(answer)
		fmt.Println(string(text))
	}
}
