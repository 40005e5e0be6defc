package importer

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/fullbore-net/fullbore/internal/render/cjson"
	"github.com/fullbore-net/fullbore/result"
)

// node is an element of an XML document.
type node struct {
	name  string
	attrs map[string]string
	text  string
	kids  []*node
}

// mostDepth bounds how deep elements may stand in each other.
const mostDepth = 16

// parseXML reads all elements at the top of data.
func parseXML(data []byte) ([]*node, error) {
	dec := xml.NewDecoder(bytes.NewReader(data))
	top := &node{}
	stack := []*node{top}
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("xml: %w", err)
		}
		at := stack[len(stack)-1]
		switch t := tok.(type) {
		case xml.StartElement:
			if len(stack) > mostDepth {
				return nil, errors.New("xml: too deep")
			}
			n := &node{name: t.Name.Local, attrs: map[string]string{}}
			for _, a := range t.Attr {
				n.attrs[a.Name.Local] = a.Value
			}
			at.kids = append(at.kids, n)
			stack = append(stack, n)
		case xml.EndElement:
			at.text = strings.TrimSpace(at.text)
			stack = stack[:len(stack)-1]
		case xml.CharData:
			at.text += string(t)
		}
	}
	return top.kids, nil
}

// decodeXML reads NTTTCP's documents: of Linux, or of Windows, also the samples of -sam.
func decodeXML(data []byte) ([]Document, error) {
	tops, err := parseXML(data)
	if err != nil {
		return nil, fmt.Errorf("%w; %w", ErrUnknown, err)
	}
	var out []Document
	for _, top := range tops {
		docs := []*node{top}
		if top.name == "samples" {
			docs = top.kids
		}
		for _, d := range docs {
			if d.name != "ntttcps" && d.name != "ntttcpr" {
				return nil, ErrUnknown
			}
			f := ntttcpOfXML(d)
			format := NTTTCPXML
			if f.windows {
				format = WindowsXML
			}
			out = append(out, imported(format, f.run())...)
		}
	}
	return out, nil
}

func ntttcpOfXML(d *node) *ntttcp {
	f := newNTTTCP()
	f.sender = d.name == "ntttcps"
	f.version, f.name = d.attrs["version"], d.attrs["computername"]
	f.windows = !strings.HasSuffix(f.version, "-linux")
	decimal := false
	for _, k := range d.kids {
		decimal = decimal || k.name == "throughput" && k.attrs["metric"] == "Bps"
	}
	if f.windows || !decimal {
		f.kb, f.mb = 1<<10, 1<<20
	}
	thread := 0
	for _, k := range d.kids {
		switch k.name {
		case "parameters":
			for _, p := range k.kids {
				f.params[p.name] = p.text
				f.keep("parameters."+p.name, "", p.text)
			}
		case "thread":
			for _, p := range k.kids {
				if p.name == "estats" {
					f.estats(thread, p)
					continue
				}
				f.set(thread, p.name, p.attrs["metric"], p.text)
			}
			thread++
		case "os":
			f.os = k.text
		default:
			f.set(-1, k.name, k.attrs["metric"], k.text)
		}
	}
	return f
}

func (f *ntttcp) estats(thread int, n *node) {
	at := result.EStats{Moment: n.attrs["type"]}
	for _, s := range n.kids {
		one := result.EStatsStructure{Name: s.attrs["name"]}
		for _, p := range s.kids {
			one.Properties = append(one.Properties, result.EStatsProperty{Name: p.attrs["name"], Value: p.attrs["value"]})
			f.keep(fmt.Sprintf("thread[%d].estats.%s.%s.%s", thread, n.attrs["type"], s.attrs["name"], p.attrs["name"]), "", p.attrs["value"])
		}
		at.Structures = append(at.Structures, one)
	}
	t := f.thread(thread)
	t.estats = append(t.estats, at)
}

// jsonNames are those of the Linux program's JSON that are spelled otherwise than in its XML.
var jsonNames = map[string]string{
	"totalBytes": "total_bytes", "realTime": "realtime", "avgBytesPerCompl": "avg_bytes_per_compl", "threadsAvgBytesPerCompl": "threads_avg_bytes_per_compl",
	"avgFrameSize": "avg_frame_size", "throughputs": "throughput", "totalBuffers": "total_buffers", "avgPacketsPerInterrupt": "avg_packets_per_interrupt",
	"interrupt": "interrupts", "interruptTotal": "total_interrupts", "avgPacketsPerDpc": "avg_packets_per_dpc", "packetsSent": "packets_sent",
	"packetsReceived": "packets_received", "tcpAverageRtt metric": "tcp_average_rtt",
	"sendSocketBuff": "send_socket_buff", "recvSocketBuff": "recv_socket_buff", "syncPort": "sync_port", "noSync": "no_sync", "runTime": "run_time",
	"warmupTime": "warmup_time", "cooldownTime": "cooldown_time", "useIpv6": "use_ipv6",
}

func xmlName(name string) string {
	if n, ok := jsonNames[name]; ok {
		return n
	}
	return name
}

// decodeNTTTCPJSON reads the documents of ntttcp-for-linux -j, one after the other.
func decodeNTTTCPJSON(data []byte) ([]Document, error) {
	var out []Document
	dec := json.NewDecoder(bytes.NewReader(data))
	for dec.More() {
		v, err := cjson.Next(dec)
		if err != nil {
			return nil, fmt.Errorf("json: %w", err)
		}
		top, ok := v.(*cjson.Object)
		if !ok {
			return nil, ErrUnknown
		}
		for _, root := range []string{"ntttcps", "ntttcpr"} {
			if d, ok := top.Get(root).(*cjson.Object); ok {
				f := ntttcpOfJSON(d, root == "ntttcps")
				out = append(out, imported(NTTTCPJSON, f.run())...)
			}
		}
	}
	return out, nil
}

func ntttcpOfJSON(d *cjson.Object, sender bool) *ntttcp {
	f := newNTTTCP()
	f.sender = sender
	for _, m := range d.Members {
		switch v := m.Value.(type) {
		case string:
			switch m.Key {
			case "computername":
				f.name = v
			case "version":
				f.version = v
			case "os":
				f.os = v
			default:
				f.set(-1, xmlName(m.Key), "", v)
			}
		case *cjson.Object:
			if m.Key == "parameters" {
				for _, p := range v.Members {
					s, _ := p.Value.(string)
					f.params[xmlName(p.Key)] = s
					f.keep("parameters."+xmlName(p.Key), "", s)
				}
				continue
			}
			f.pair(-1, xmlName(m.Key), v)
		case cjson.Array:
			for i, one := range v {
				o, _ := one.(*cjson.Object)
				if m.Key != "threads" {
					f.pair(-1, xmlName(m.Key), o)
					continue
				}
				f.jsonThread(i, o)
			}
		}
	}
	return f
}

func (f *ntttcp) jsonThread(i int, o *cjson.Object) {
	if o == nil {
		return
	}
	for _, m := range o.Members {
		switch v := m.Value.(type) {
		case *cjson.Object:
			f.pair(i, xmlName(m.Key), v)
		case cjson.Array:
			for _, one := range v {
				p, _ := one.(*cjson.Object)
				f.pair(i, xmlName(m.Key), p)
			}
		}
	}
}

// pair takes {"metric": …, "value": …}.
func (f *ntttcp) pair(i int, name string, o *cjson.Object) {
	if o == nil {
		return
	}
	metric, _ := o.Get("metric").(string)
	value, _ := o.Get("value").(string)
	f.set(i, name, metric, value)
}
