// Package process is a fleet of local processes: one command line a replica, with
// a port and GPUs assigned, probed over HTTP, restarted with back-off.
//
// # Surviving the server
//
// A replica outlives a crash of the server: it has its own process group and
// writes its log into a file. Before the process counts as started a record of it
// (pid, create time, port, GPUs, config hash) lies in DIR/replicas, written,
// synced and renamed. A record without a pid is written before the fork, and the
// process carries SLUICE_FLEET and SLUICE_REPLICA in its environment, so that one
// born between the two is found by a scan. New adopts what still runs, Ensure
// claims it, Reconcile ends what nobody claimed. A process is the recorded one
// only when pid and create time agree and its environment, where the system shows
// it, names the replica.
//
// # Logs
//
// DIR/logs/REPLICA.log receives stdout and stderr directly. The running process
// holds the file open, across a crash of ours too, so it is rotated by copy and
// truncate: at Config.LogMaxBytes the content moves to .1 (.1 to .2 and so on) and
// the file is emptied. Lines written between the copy and the cut are lost; the
// file is opened for append, so the next line begins at its new end.
//
// # Ports
//
// A port is found free on 127.0.0.1 just before the start. Somebody else can take
// it first: when the process ends before it was ever ready and the port is held by
// another, it is started again on another port at once, without counting as a
// failure.
//
// On Windows there are no process groups and no folder lock: only the process
// itself is ended, at once.
package process
