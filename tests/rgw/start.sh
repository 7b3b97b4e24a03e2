#!/bin/bash
# Starts a real S3 server on this machine: Ceph's object gateway over one
# storage daemon that keeps its objects in memory. Ready in about a second.
#
#   tests/rgw/start.sh DIR [PORT]       prints the endpoint; state goes to DIR
#   tests/rgw/stop.sh DIR
#
# Takes PORT (7480 by default) and the two above it. Needs 400 MB of memory and
# no root. Access key and secret are below.
set -euo pipefail

dir=$(realpath -m "${1:?the folder for its state}")
port=${2:-7480}
access_key=AKTEST
secret_key=SKTESTSECRET

missing=()
for tool in ceph ceph-authtool ceph-mon ceph-osd monmaptool radosgw radosgw-admin; do
  command -v "$tool" > /dev/null || missing+=("$tool")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "not here: ${missing[*]}. To install:" \
    "apt-get install radosgw ceph-mon ceph-osd ceph-common" >&2
  exit 77
fi

rm -rf "$dir"
mkdir -p "$dir"/{mon,osd,rgw,run,log}
log="$dir/log/setup.log"
fsid=$(cat /proc/sys/kernel/random/uuid)
osd_id=$(cat /proc/sys/kernel/random/uuid)
monitor="[v2:127.0.0.1:$((port + 1)),v1:127.0.0.1:$((port + 2))]"

# cephx stays on: without it the gateway never finishes its start. The interval
# of paxos is what makes the start take one second and not eleven; tcp_nodelay
# spares small replies 44 ms.
cat > "$dir/ceph.conf" << END
[global]
fsid = $fsid
mon host = $monitor
mon initial members = a
public addr = 127.0.0.1
cluster addr = 127.0.0.1
keyring = $dir/keyring
run dir = $dir/run
log file = $dir/log/\$name.log
pid file = $dir/run/\$name.pid
admin socket = $dir/run/\$name.asok
paxos propose interval = 0.02
mon tick interval = 1
mon data avail warn = 1
mon data avail crit = 1
mon allow pool size one = true
mon max pg per osd = 2000
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
[mon.a]
mon data = $dir/mon
[osd.0]
osd data = $dir/osd
osd objectstore = memstore
memstore device bytes = 4294967296
[client.rgw]
rgw data = $dir/rgw
rgw frontends = beast endpoint=127.0.0.1:$port tcp_nodelay=1
rgw thread pool size = 64
debug rgw = 0/0
END
conf=(-c "$dir/ceph.conf")

give_key() { ceph-authtool "$dir/keyring" --gen-key "$@" >> "$log"; }
ceph-authtool -C "$dir/keyring" >> "$log"
give_key -n mon. --cap mon 'allow *'
give_key -n client.admin --cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *'
give_key -n client.rgw --cap mon 'allow rw' --cap osd 'allow rwx'
give_key -n osd.0 --cap mon 'allow profile osd' --cap osd 'allow *'

monmaptool --create --fsid "$fsid" --addv a "$monitor" "$dir/monmap" >> "$log"
ceph-mon "${conf[@]}" --mkfs -i a --monmap "$dir/monmap" --keyring "$dir/keyring"
ceph-mon "${conf[@]}" -i a
ceph "${conf[@]}" osd new "$osd_id" >> "$log" 2>&1
ceph-osd "${conf[@]}" -i 0 --mkfs --osd-uuid "$osd_id" >> "$log" 2>&1
ceph-osd "${conf[@]}" -i 0 >> "$log" 2>&1
timeout 60 radosgw "${conf[@]}" -n client.rgw >> "$log" 2>&1

for _ in $(seq 300); do
  (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null && break
  sleep 0.1
done
radosgw-admin "${conf[@]}" user create --uid=test --display-name=test \
  --access-key="$access_key" --secret="$secret_key" >> "$log" 2>&1
echo "http://127.0.0.1:$port"
