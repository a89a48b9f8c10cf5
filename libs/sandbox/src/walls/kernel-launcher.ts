/**
 * The second wall of the sandbox: applies the kernel's restrictions to this process and then executes the program that its
 * arguments name.
 *
 * It runs in Deno with only the permission to call the C library, before any hostile code is loaded; the program that replaces
 * it has no permission. It needs no root, no user namespaces and no tools, and works in containers. Each restriction that the
 * kernel supports is applied and reported on standard error:
 * K1: no_new_privs; the process also ends when its parent ends.
 * K2: Landlock: only the runtime itself and the machine's libraries can be opened, and no file can be written; no TCP port can
 *     be bound or connected to; no signals to, and no abstract sockets of, processes outside.
 * K3: seccomp: no sockets, no other processes, no signals except to itself, no namespaces, mounts, tracing, keys, kernel
 *     modules or io_uring.
 *
 * It has no imports, because Deno gets it as one text. Its arguments are the program's path and all arguments of the program.
 */

interface Runtime {
  readonly args: readonly string[];
  readonly build: { readonly arch: string };
  dlopen<Symbols extends object>(
    name: string,
    symbols: Symbols,
  ): {
    readonly symbols: {
      readonly [Name in keyof Symbols]: (...args: (number | bigint | Uint8Array | null)[]) => number | bigint;
    };
  };
  readonly UnsafePointer: { of(bytes: Uint8Array): object | null; value(pointer: object | null): bigint };
  readonly stderr: { writeSync(bytes: Uint8Array): number };
  exit(code: number): never;
}

const runtime = (globalThis as unknown as { Deno: Runtime }).Deno;
const isArm = runtime.build.arch === "aarch64";
const word = "i64";
const { symbols: libc } = runtime.dlopen("libc.so.6", {
  syscall: { parameters: [word, word, word, word, word, word], result: word },
  open: { parameters: ["buffer", "i32"], result: "i32" },
  getpid: { parameters: [], result: "i32" },
});

const encoder = new TextEncoder();
/** Buffers whose addresses the kernel gets; they are kept here so that they are not freed. */
const kept: Uint8Array[] = [];
const walls: string[] = [];

// ---- K1 ----------------------------------------------------------------------------------------------------------

/** Numbers of system calls, on x64 and on arm64. */
const number = (x64: number, arm64: number) => (isArm ? arm64 : x64);
const PRCTL = number(157, 167);
const SIGKILL = 9;
if (call(PRCTL, 38, 1) === 0) walls.push("no_new_privs");
call(PRCTL, 1, SIGKILL);

// ---- K2 ----------------------------------------------------------------------------------------------------------

const READ_FILE = 1 << 2;
const EXECUTE = 1 << 0;
/** Number of file rights, one bit each, that each version of Landlock has. */
const FILE_RIGHTS = [0, 13, 14, 15, 15, 16];
const O_PATH = 0x20_0000;
const LANDLOCK_CREATE = 444;
const LANDLOCK_ADD = 445;
const LANDLOCK_RESTRICT = 446;

const version = call(LANDLOCK_CREATE, 0, 0, 1);
if (version > 0 && restrictFiles(version)) walls.push(`Landlock ${version}`);

function restrictFiles(abi: number): boolean {
  const attributes = new BigUint64Array(3);
  attributes[0] = (1n << BigInt(FILE_RIGHTS[abi] ?? 16)) - 1n;
  attributes[1] = 3n; // TCP: bind and connect
  attributes[2] = 3n; // abstract sockets, signals
  const size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
  const ruleset = call(LANDLOCK_CREATE, addressOf(new Uint8Array(attributes.buffer)), size, 0);
  if (ruleset < 0) return false;
  const [program = ""] = runtime.args;
  const loader = isArm ? "/lib/ld-linux-aarch64.so.1" : "/lib64/ld-linux-x86-64.so.2";
  for (const file of [program, loader]) allow(ruleset, file, READ_FILE | EXECUTE);
  for (const folder of ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"])
    allow(ruleset, folder, READ_FILE);
  return call(LANDLOCK_RESTRICT, ruleset, 0) === 0;
}

function allow(ruleset: number, path: string, rights: number): void {
  const file = Number(libc.open(text(path), O_PATH));
  if (file < 0) return;
  const rule = new Uint8Array(12);
  const view = new DataView(rule.buffer);
  view.setBigUint64(0, BigInt(rights), true);
  view.setInt32(8, file, true);
  call(LANDLOCK_ADD, ruleset, 1, addressOf(rule), 0);
}

// ---- K3 ----------------------------------------------------------------------------------------------------------

/** System calls that are refused: their numbers on x64 and on arm64; 0 = the call does not exist there. */
const REFUSED: Readonly<Record<string, readonly [x64: number, arm64: number]>> = {
  socket: [41, 198],
  connect: [42, 203],
  accept: [43, 202],
  accept4: [288, 242],
  bind: [49, 200],
  listen: [50, 201],
  sendto: [44, 206],
  sendmsg: [46, 211],
  sendmmsg: [307, 269],
  recvmmsg: [299, 243],
  fork: [57, 0],
  vfork: [58, 0],
  execveat: [322, 281],
  tkill: [200, 130],
  rt_sigqueueinfo: [129, 138],
  rt_tgsigqueueinfo: [297, 240],
  pidfd_open: [434, 434],
  pidfd_send_signal: [424, 424],
  pidfd_getfd: [438, 438],
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  kcmp: [312, 272],
  perf_event_open: [298, 241],
  bpf: [321, 280],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  unshare: [272, 97],
  setns: [308, 268],
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  mknod: [133, 0],
  mknodat: [259, 33],
  setuid: [105, 146],
  setgid: [106, 144],
  setreuid: [113, 145],
  setregid: [114, 143],
  setresuid: [117, 147],
  setresgid: [119, 149],
  setgroups: [116, 159],
  // Landlock does not restrict these: owners, modes, attributes and times of files, and watching files.
  chmod: [90, 0],
  fchmod: [91, 52],
  fchmodat: [268, 53],
  fchmodat2: [452, 452],
  chown: [92, 0],
  fchown: [93, 55],
  lchown: [94, 0],
  fchownat: [260, 54],
  setxattr: [188, 5],
  lsetxattr: [189, 6],
  fsetxattr: [190, 7],
  removexattr: [197, 14],
  lremovexattr: [198, 15],
  fremovexattr: [199, 16],
  utime: [132, 0],
  utimes: [235, 0],
  futimesat: [261, 0],
  utimensat: [280, 88],
  inotify_add_watch: [254, 27],
  // These affect other processes of the same account: their scheduling, their memory, and what they share.
  setpriority: [141, 140],
  sched_setparam: [142, 118],
  sched_setscheduler: [144, 119],
  sched_setaffinity: [203, 122],
  sched_setattr: [314, 274],
  ioprio_set: [251, 30],
  migrate_pages: [256, 238],
  move_pages: [279, 239],
  process_mrelease: [448, 448],
  setpgid: [109, 154],
  capset: [126, 91],
  shmget: [29, 194],
  shmat: [30, 196],
  shmctl: [31, 195],
  semget: [64, 190],
  semop: [65, 193],
  semctl: [66, 191],
  semtimedop: [220, 192],
  msgget: [68, 186],
  msgsnd: [69, 189],
  msgrcv: [70, 188],
  msgctl: [71, 187],
  mq_open: [240, 180],
  mq_unlink: [241, 181],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  acct: [163, 89],
  quotactl: [179, 60],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  adjtimex: [159, 171],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  iopl: [172, 0],
  ioperm: [173, 0],
  personality: [135, 92],
  syslog: [103, 116],
  fanotify_init: [300, 262],
};
const EXECVE = number(59, 221);
const CLONE = number(56, 220);
const CLONE3 = 435;
const KILL = number(62, 129);
const TGKILL = number(234, 131);
const PRLIMIT = number(302, 261);

/** Instructions and results of seccomp filters. */
const LOAD = 0x20;
const IF_EQUAL = 0x15;
const IF_AT_LEAST = 0x35;
const IF_SET = 0x45;
const RETURN = 0x06;
const ALLOWED = 0x7fff_0000;
const NOT_PERMITTED = 0x0005_0001;
const NOT_THERE = 0x0005_0026;
const ENDED = 0x8000_0000;
/** Offsets of the call's number, of the architecture, and of the first argument. */
const AT_NUMBER = 0;
const AT_ARCHITECTURE = 4;
const AT_ARGUMENT = 16;
/** Bit in the numbers of the x32 system calls, a second set of calls on x64. */
const X32 = 0x4000_0000;
const CLONE_THREAD = 0x1_0000;

const [program = ""] = runtime.args;
const path = text(program);
if (filterCalls(addressOf(path))) walls.push("seccomp");

function filterCalls(pathAddress: bigint): boolean {
  const pid = Number(libc.getpid());
  const lines: number[][] = [];
  const add = (code: number, value: number, ifTrue = 0, ifFalse = 0) =>
    lines.push([code, ifTrue, ifFalse, value]);
  const end = (value: number) => add(RETURN, value);
  add(LOAD, AT_ARCHITECTURE);
  add(IF_EQUAL, isArm ? 0xc000_00b7 : 0xc000_003e, 1, 0);
  end(ENDED);
  add(LOAD, AT_NUMBER);
  if (!isArm) {
    add(IF_AT_LEAST, X32, 0, 1);
    end(NOT_PERMITTED);
  }
  for (const [x64, arm64] of Object.values(REFUSED)) {
    const refused = number(x64, arm64);
    if (refused === 0) continue;
    add(IF_EQUAL, refused, 0, 1);
    end(NOT_PERMITTED);
  }
  // The C library then falls back to clone, whose flags a filter can check.
  add(IF_EQUAL, CLONE3, 0, 1);
  end(NOT_THERE);
  add(IF_EQUAL, CLONE, 0, 4);
  add(LOAD, AT_ARGUMENT);
  add(IF_SET, CLONE_THREAD, 0, 1);
  end(ALLOWED);
  end(NOT_PERMITTED);
  for (const toProcess of [KILL, TGKILL]) {
    add(IF_EQUAL, toProcess, 0, 4);
    add(LOAD, AT_ARGUMENT);
    add(IF_EQUAL, pid, 0, 1);
    end(ALLOWED);
    end(NOT_PERMITTED);
  }
  // Only for the process itself, which 0 also stands for.
  add(IF_EQUAL, PRLIMIT, 0, 5);
  add(LOAD, AT_ARGUMENT);
  add(IF_EQUAL, pid, 1, 0);
  add(IF_EQUAL, 0, 0, 1);
  end(ALLOWED);
  end(NOT_PERMITTED);
  // execve is allowed only with this path, for the call below.
  add(IF_EQUAL, EXECVE, 0, 6);
  add(LOAD, AT_ARGUMENT);
  add(IF_EQUAL, Number(pathAddress & 0xffff_ffffn), 0, 3);
  add(LOAD, AT_ARGUMENT + 4);
  add(IF_EQUAL, Number(pathAddress >> 32n), 0, 1);
  end(ALLOWED);
  end(NOT_PERMITTED);
  end(ALLOWED);
  const filter = new Uint8Array(lines.length * 8);
  const view = new DataView(filter.buffer);
  for (const [i, [code = 0, ifTrue = 0, ifFalse = 0, value = 0]] of lines.entries()) {
    view.setUint16(i * 8, code, true);
    view.setUint8(i * 8 + 2, ifTrue);
    view.setUint8(i * 8 + 3, ifFalse);
    view.setUint32(i * 8 + 4, value, true);
  }
  const head = new Uint8Array(16);
  new DataView(head.buffer).setUint16(0, lines.length, true);
  new DataView(head.buffer).setBigUint64(8, addressOf(filter), true);
  return call(PRCTL, 22, 2, addressOf(head)) === 0;
}

// ---- the program -------------------------------------------------------------------------------------------------

/** This line comes before the program's own output and tells the parent which restrictions are in force. */
runtime.stderr.writeSync(encoder.encode(`walls: ${walls.join(", ")}\n`));
const environment = [
  "DENO_DIR=/dev/null/none",
  "DENO_WEBGPU_BACKEND=none",
  "DENO_NO_UPDATE_CHECK=1",
  "NO_COLOR=1",
];
call(EXECVE, addressOf(path), addressOf(list(runtime.args)), addressOf(list(environment)));
runtime.stderr.writeSync(encoder.encode(`cannot become ${program}\n`));
runtime.exit(1);

function call(name: number, ...args: (number | bigint)[]): number {
  const [a = 0, b = 0, c = 0, d = 0, e = 0] = args;
  return Number(libc.syscall(name, a, b, c, d, e));
}

/** A string as C expects it. */
function text(value: string): Uint8Array {
  return encoder.encode(`${value}\0`);
}

/** An array of pointers to strings, ended by a null pointer. */
function list(values: readonly string[]): Uint8Array {
  const addresses = new BigUint64Array(values.length + 1);
  for (const [i, value] of values.entries()) addresses[i] = addressOf(text(value));
  return new Uint8Array(addresses.buffer);
}

function addressOf(bytes: Uint8Array): bigint {
  kept.push(bytes);
  return runtime.UnsafePointer.value(runtime.UnsafePointer.of(bytes));
}
