//! One control plane: etcd, API server and controllers on free loopback ports, with a certificate authority of its own.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
};

use tokio::io::AsyncWriteExt;

use super::{
    binaries::{self, Binaries},
    certificates::{Authority, token_keys},
    keeper::{Keeper, Server},
    kubeconfig::{self, Credentials, write_file},
    wait,
};

/// On two busy cores an API server is ready after 5 to 15 s.
const READY: Duration = Duration::from_secs(90);

/// A running control plane. Dropping it stops it.
pub(crate) struct ControlPlane {
    binaries: &'static Binaries,
    directory: PathBuf,
    keeper: Keeper,
    authority: Authority,
    etcd_url: String,
    port: u16,
    // Dropped in this order: controllers, API server, etcd.
    controllers: Option<Server>,
    api_server: Option<Server>,
    etcd: Server,
}

impl ControlPlane {
    /// Starts a control plane with its files in a directory, and waits until it answers.
    pub(crate) async fn start(directory: &Path, keeper: Keeper) -> Self {
        let binaries = match binaries::find() {
            Ok(binaries) => binaries,
            Err(missing) => panic!("no servers to start: {missing:?}"),
        };
        fs::create_dir_all(directory).unwrap();
        let authority = Authority::new();
        write_files(directory, &authority);
        let [client_port, peer_port, port] = free_ports();
        let etcd_url = format!("http://127.0.0.1:{client_port}");
        let etcd = start_etcd(binaries, directory, &keeper, &etcd_url, peer_port);
        let mut plane = Self {
            binaries,
            directory: directory.to_owned(),
            keeper,
            authority,
            etcd_url,
            port,
            controllers: None,
            api_server: None,
            etcd,
        };
        let admin = plane.authority.user("admin", "system:masters");
        plane.write_kubeconfig("admin", &Credentials::Certificate(admin));
        plane.start_api_server().await;
        plane.start_controllers();
        plane
    }

    /// The address, as it stands in kubeconfigs.
    pub(crate) fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// A client with every right. It belongs to the runtime it is made in, so every case makes its own.
    pub(crate) async fn client(&self) -> Client {
        client_from(&self.admin_kubeconfig()).await
    }

    /// The kubeconfig of someone with every right.
    pub(crate) fn admin_kubeconfig(&self) -> PathBuf {
        self.directory.join("admin.kubeconfig")
    }

    /// A kubeconfig for any user. A certificate made here carries one group only, so the administrator acts as them.
    pub(crate) fn kubeconfig_for_user(&self, user: &str, groups: &[&str]) -> PathBuf {
        let (certificate, key) = (
            self.directory.join("admin.crt"),
            self.directory.join("admin.key"),
        );
        let who = Credentials::Impersonation {
            certificate,
            key,
            user,
            groups,
        };
        self.write_kubeconfig(&user.replace(':', "_"), &who)
    }

    /// A kubeconfig for any user, with a certificate in files of its own. The same name again replaces the files.
    pub(crate) fn kubeconfig_with_certificate(&self, name: &str, user: &str) -> PathBuf {
        let identity = self.authority.user(user, "tests");
        self.write_kubeconfig(name, &Credentials::Certificate(identity))
    }

    /// A kubeconfig for any service account, by token.
    pub(crate) async fn kubeconfig_for_service_account(
        &self,
        namespace: &str,
        name: &str,
    ) -> PathBuf {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await, namespace);
        let request = TokenRequest {
            spec: TokenRequestSpec::default(),
            ..TokenRequest::default()
        };
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .unwrap_or_else(|error| {
                panic!("no token for service account {namespace}/{name}: {error}")
            });
        let token = answer.status.expect("an issued token has a status").token;
        self.write_kubeconfig(&format!("{namespace}_{name}"), &Credentials::Token(token))
    }

    /// Runs kubectl as admin, with this on its standard input.
    pub(crate) async fn kubectl(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut kubectl = tokio::process::Command::new(self.binaries.kubectl())
            .arg("--kubeconfig")
            .arg(self.admin_kubeconfig())
            .args(arguments)
            // Discovery is cached below HOME: keep it with the servers it is about.
            .env("KUBECACHEDIR", self.directory.join("kubectl"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("kubectl can be started");
        let mut stdin = kubectl.stdin.take().expect("its standard input is a pipe");
        // kubectl may refuse its arguments and end before it has read anything.
        if let Err(error) = stdin.write_all(input).await {
            assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "{error}");
        }
        drop(stdin);
        kubectl.wait_with_output().await.expect("kubectl ends")
    }

    /// Kills the API server as a crash would. Its data stays with etcd.
    pub(crate) fn kill_api_server(&mut self) {
        self.api_server = None;
    }

    /// Starts the API server, on the port it had before, and waits until it is ready.
    pub(crate) async fn start_api_server(&mut self) {
        let mut command = Command::new(self.binaries.api_server());
        command
            .arg(format!("--etcd-servers={}", self.etcd_url))
            .arg(format!("--secure-port={}", self.port))
            .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
            .args([
                "--service-cluster-ip-range=10.0.0.0/24",
                "--authorization-mode=RBAC",
            ])
            .args([
                "--disable-admission-plugins=ServiceAccount",
                "--profiling=false",
            ])
            .arg("--service-account-issuer=https://gitspoke.test")
            .arg(self.flag("--service-account-key-file", "tokens.pub"))
            .arg(self.flag("--service-account-signing-key-file", "tokens.key"))
            .arg(self.flag("--client-ca-file", "ca.crt"))
            .arg(self.flag("--tls-cert-file", "server.crt"))
            .arg(self.flag("--tls-private-key-file", "server.key"))
            .arg(self.flag("--cert-dir", "certs"));
        self.api_server = Some(start(
            &self.keeper,
            command,
            &self.directory,
            "kube-apiserver",
        ));
        self.wait_until_ready().await;
    }

    async fn wait_until_ready(&mut self) {
        let client = self.client().await;
        let log = self.directory.join("kube-apiserver.log");
        let (api_server, etcd) = (&mut self.api_server, &mut self.etcd);
        wait::until("an API server that is ready", READY, || {
            for (name, server) in [
                ("kube-apiserver", api_server.as_mut()),
                ("etcd", Some(&mut *etcd)),
            ] {
                if let Some(ended) = server.and_then(Server::ended) {
                    panic!(
                        "{name} ended with {ended}; its log is beside {}",
                        log.display()
                    );
                }
            }
            let client = client.clone();
            async move {
                let request = http::Request::get("/readyz")
                    .body(Vec::new())
                    .expect("the address is valid");
                client
                    .request_text(request)
                    .await
                    .map(drop)
                    .map_err(|error| error.to_string())
            }
        })
        .await;
    }

    fn start_controllers(&mut self) {
        let [port] = free_ports();
        let mut command = Command::new(self.binaries.controllers());
        command
            .arg(self.flag("--kubeconfig", "admin.kubeconfig"))
            .arg(format!("--secure-port={port}"))
            .args([
                "--bind-address=127.0.0.1",
                "--leader-elect=false",
                "--profiling=false",
            ])
            .arg(self.flag("--service-account-private-key-file", "tokens.key"))
            .arg(self.flag("--root-ca-file", "ca.crt"))
            .arg(self.flag("--cluster-signing-cert-file", "ca.crt"))
            .arg(self.flag("--cluster-signing-key-file", "ca.key"))
            .arg(self.flag("--cert-dir", "certs"));
        self.controllers = Some(start(
            &self.keeper,
            command,
            &self.directory,
            "kube-controller-manager",
        ));
    }

    /// Process ids of the servers that run.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let optional = [&self.controllers, &self.api_server];
        let running = optional.into_iter().flatten().chain([&self.etcd]);
        running.map(Server::pid).collect()
    }

    fn write_kubeconfig(&self, name: &str, who: &Credentials<'_>) -> PathBuf {
        kubeconfig::write(
            &self.directory,
            name,
            &self.server(),
            &self.directory.join("ca.crt"),
            who,
        )
    }

    fn flag(&self, flag: &str, file: &str) -> String {
        format!("{flag}={}", self.directory.join(file).display())
    }
}

/// A client from a kubeconfig file.
pub(crate) async fn client_from(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("we wrote this file");
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("the kubeconfig is complete");
    config.default_retry = false;
    Client::try_from(config).expect("the kubeconfig is valid")
}

fn write_files(directory: &Path, authority: &Authority) {
    let (ca, server, (token_key, token_public)) =
        (authority.identity(), authority.server(), token_keys());
    for (name, text) in [
        ("ca.crt", ca.certificate),
        ("ca.key", ca.key),
        ("server.crt", server.certificate),
        ("server.key", server.key),
        ("tokens.key", token_key),
        ("tokens.pub", token_public),
    ] {
        write_file(&directory.join(name), &text);
    }
}

fn start_etcd(
    binaries: &Binaries,
    directory: &Path,
    keeper: &Keeper,
    url: &str,
    peer_port: u16,
) -> Server {
    let peer = format!("http://127.0.0.1:{peer_port}");
    let mut command = Command::new(binaries.etcd());
    command
        .arg(format!("--data-dir={}", directory.join("etcd").display()))
        .arg(format!("--listen-client-urls={url}"))
        .arg(format!("--advertise-client-urls={url}"))
        .arg(format!("--listen-peer-urls={peer}"))
        .arg(format!("--initial-advertise-peer-urls={peer}"))
        .arg(format!("--initial-cluster=default={peer}"))
        .args(["--unsafe-no-fsync", "--log-level=error"]);
    start(keeper, command, directory, "etcd")
}

/// Starts a server with its output in a log of its own; a restarted one goes on writing to it.
fn start(keeper: &Keeper, mut command: Command, directory: &Path, name: &str) -> Server {
    let log = File::options()
        .create(true)
        .append(true)
        .open(directory.join(format!("{name}.log")))
        .unwrap();
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log);
    keeper
        .spawn(command)
        .unwrap_or_else(|error| panic!("could not start {name}: {error}"))
}

/// Ports nobody listens on. They are held until all are known, so that they differ.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners: [TcpListener; N] =
        std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").expect("loopback has free ports"));
    listeners.map(|listener| {
        listener
            .local_addr()
            .expect("a bound socket has an address")
            .port()
    })
}
