//! The console, at `/console/`: the files of `clients/console`, embedded when the gateway is built. They are the same
//! for everybody and hold no user data; the page fetches its data from the endpoints with the key of its user.
//! `/console/sign-in.json` lists the issuers at which to sign in.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    middleware,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use include_dir::{Dir, include_dir};
use serde::Serialize;
use url::Url;

use crate::{auth::oidc::config::OidcConfig, http::etag, problem::Problem};

/// The path of the console.
pub const PATH: &str = "/console/";

static BUILT: Dir<'_> = include_dir!("$KAIRO_CONSOLE");
static FILES: LazyLock<BTreeMap<&str, ConsoleFile>> = LazyLock::new(|| collect_files(&BUILT));

/// The page served for every screen of the console.
const PAGE: &str = "index.html";
/// The folder of files whose names contain a hash of their content, so that they may be cached forever.
const HASHED: &str = "assets/";

/// The content security policy: resources from this origin only, no framing, and no text that becomes code: only the
/// framework's own templates turn text into elements.
const POLICY: &str = "default-src 'self'; img-src 'self' blob:; media-src 'self' blob:; object-src 'none'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types svelte-trusted-html";
const HEAD: [(HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// An embedded file, plain and compressed.
struct ConsoleFile {
    content_type: &'static str,
    plain: FileContent,
    brotli: Option<FileContent>,
    gzip: Option<FileContent>,
}

struct FileContent {
    bytes: &'static [u8],
    tag: HeaderValue,
}

impl FileContent {
    fn from_bytes(bytes: &'static [u8]) -> Self {
        Self { bytes, tag: etag::strong(bytes) }
    }
}

/// The parts of the console that depend on the configuration.
struct ConsoleSettings {
    policy: HeaderValue,
    sign_in: Vec<SignIn>,
}

/// An issuer at which users sign in, and the OAuth client to use there.
#[derive(Clone, Debug, Serialize)]
struct SignIn {
    issuer: String,
    client_id: String,
    scope: String,
    authorization_endpoint: String,
    token_endpoint: String,
}

impl ConsoleSettings {
    fn new(issuers: &[OidcConfig]) -> Self {
        let with_client = issuers.iter().filter(|issuer| !issuer.console_client_id.is_empty());
        let sign_in = with_client.map(|issuer| SignIn {
            issuer: issuer.issuer.clone(),
            client_id: issuer.console_client_id.clone(),
            scope: issuer.console_scope.clone(),
            authorization_endpoint: issuer.console_authorization_url.clone(),
            token_endpoint: issuer.console_token_url.clone(),
        });
        let sign_in: Vec<_> = sign_in.collect();
        Self { policy: build_policy(&sign_in), sign_in }
    }
}

/// Builds the content security policy, which allows connections to the issuers' token endpoints and no other server.
fn build_policy(sign_in: &[SignIn]) -> HeaderValue {
    let urls = sign_in.iter().filter_map(|at| Url::parse(&at.token_endpoint).ok());
    let origins: BTreeSet<_> = urls.map(|url| url.origin().ascii_serialization()).collect();
    if origins.is_empty() {
        return HeaderValue::from_static(POLICY);
    }
    let origins = origins.into_iter().collect::<Vec<_>>().join(" ");
    let policy = format!("{POLICY}; connect-src 'self' {origins}");
    // An origin is always a valid header value.
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static(POLICY))
}

pub fn routes(issuers: &[OidcConfig]) -> Router {
    Router::new()
        .route("/console", get(|| async { Redirect::permanent(PATH) }))
        .route(PATH, get(async |State(own): ConsoleState, headers: HeaderMap| serve_file(PAGE, &headers, &own.policy)))
        .route("/console/sign-in.json", get(async |State(own): ConsoleState| (NOT_KEPT, Json(own.sign_in.clone()))))
        .route(
            "/console/{*path}",
            get(async |State(own): ConsoleState, Path(path): Path<String>, headers: HeaderMap| {
                serve_file(&path, &headers, &own.policy)
            }),
        )
        .with_state(Arc::new(ConsoleSettings::new(issuers)))
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .layer(middleware::from_fn(etag::answer_not_modified))
}

type ConsoleState = State<Arc<ConsoleSettings>>;

/// Forbids caching without revalidation: the list of issuers may change with the next start.
const NOT_KEPT: [(HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-cache")];

fn serve_file(path: &str, headers: &HeaderMap, policy: &HeaderValue) -> Response {
    let Some((file, is_page)) = find_file(&FILES, path) else { return Problem::unknown_path().into_response() };
    let accepted = |coding| accepts_coding(headers, coding);
    let coded = [("br", &file.brotli), ("gzip", &file.gzip)];
    let found =
        coded.into_iter().find_map(|(coding, content)| Some((coding, content.as_ref()?)).filter(|_| accepted(coding)));
    let (coding, content) = found.map_or((None, &file.plain), |(coding, content)| (Some(coding), content));
    let mut response = (StatusCode::OK, content.bytes).into_response();
    let head = response.headers_mut();
    for (name, value) in HEAD {
        head.insert(name, HeaderValue::from_static(value));
    }
    head.insert(header::CONTENT_SECURITY_POLICY, policy.clone());
    let kept = if path.starts_with(HASHED) && !is_page { "public, max-age=31536000, immutable" } else { "no-cache" };
    head.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.content_type));
    head.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    head.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    head.insert(header::ETAG, content.tag.clone());
    if let Some(coding) = coding {
        head.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    response
}

/// Returns the file at a path, and true if it is the page. A path whose last segment has no extension is a screen of
/// the page.
fn find_file<'a>(files: &'a BTreeMap<&str, ConsoleFile>, path: &str) -> Option<(&'a ConsoleFile, bool)> {
    if let Some(file) = files.get(path) {
        return Some((file, path == PAGE));
    }
    let last = path.rsplit('/').next().unwrap_or_default();
    let is_screen = !path.starts_with(HASHED) && !last.contains('.');
    files.get(PAGE).filter(|_| is_screen).map(|page| (page, true))
}

/// Returns true if `accept-encoding` names the coding with a weight other than zero (RFC 9110, 12.5.3).
fn accepts_coding(headers: &HeaderMap, coding: &str) -> bool {
    let lists = headers.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|item| {
        let (name, weight) = item.split_once(';').unwrap_or((item, ""));
        let weight = weight.trim().trim_start_matches("q=");
        name.trim().eq_ignore_ascii_case(coding) && !matches!(weight, "0" | "0." | "0.0" | "0.00" | "0.000")
    })
}

/// Collects the embedded files by path; `.br` and `.gz` files become the compressed forms of their originals.
fn collect_files(built: &'static Dir<'static>) -> BTreeMap<&'static str, ConsoleFile> {
    let mut contents = BTreeMap::new();
    gather_files(built, &mut contents);
    let compressed =
        |path: &str, ending| contents.get(format!("{path}.{ending}").as_str()).copied().map(FileContent::from_bytes);
    let plain = contents.iter().filter(|(path, _)| !path.ends_with(".br") && !path.ends_with(".gz"));
    let file = |(path, bytes): (&&'static str, &&'static [u8])| {
        let brotli = compressed(path, "br");
        let gzip = compressed(path, "gz");
        (*path, ConsoleFile { content_type: content_type(path), plain: FileContent::from_bytes(bytes), brotli, gzip })
    };
    plain.map(file).collect()
}

fn gather_files(dir: &'static Dir<'static>, found: &mut BTreeMap<&'static str, &'static [u8]>) {
    found.extend(dir.files().filter_map(|file| Some((file.path().to_str()?, file.contents()))));
    dir.dirs().for_each(|dir| gather_files(dir, found));
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" => "application/json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(accepted: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT_ENCODING, accepted.parse().unwrap())])
    }

    #[test]
    fn screens_are_the_page_and_files_that_are_not_there_are_not() {
        for path in [PAGE, "chat/default", "river"] {
            let response = serve_file(path, &HeaderMap::new(), &build_policy(&[]));
            let text = |name: HeaderName| response.headers()[name].to_str().unwrap().to_owned();
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            assert_eq!(text(header::CONTENT_TYPE), "text/html; charset=utf-8", "{path}");
            assert_eq!(text(header::CACHE_CONTROL), "no-cache", "{path}");
            assert!(text(header::CONTENT_SECURITY_POLICY).starts_with("default-src 'self';"), "{path}");
        }
        for path in ["assets/x", "assets/x.js", "x.html", "../Cargo.toml", "a/b.js"] {
            assert_eq!(
                serve_file(path, &HeaderMap::new(), &build_policy(&[])).status(),
                StatusCode::NOT_FOUND,
                "{path}"
            );
        }
    }

    #[test]
    fn the_page_may_ask_issuers_alone_for_tokens_and_only_where_one_signs_in_there() {
        let issuer = |client: &str, host: &str| OidcConfig {
            issuer: format!("https://{host}/"),
            console_client_id: client.to_owned(),
            console_token_url: format!("https://{host}/oauth/token"),
            ..OidcConfig::default()
        };
        let none = ConsoleSettings::new(&[issuer("", "login.example.com")]);
        assert_eq!((none.policy.to_str().unwrap(), none.sign_in.len()), (POLICY, 0));
        let two =
            [issuer("console", "b.example.com"), issuer("", "c.example.com"), issuer("console", "a.example.com:8443")];
        let two = ConsoleSettings::new(&two);
        let expected = "; connect-src 'self' https://a.example.com:8443 https://b.example.com";
        assert!(two.policy.to_str().unwrap().ends_with(expected), "{:?}", two.policy);
        assert_eq!(two.sign_in.len(), 2);
    }

    #[test]
    fn what_is_compressed_is_sent_to_those_who_take_it() {
        let page = FileContent::from_bytes(b"page");
        let file = ConsoleFile {
            content_type: "text/html",
            plain: page,
            brotli: Some(FileContent::from_bytes(b"br")),
            gzip: None,
        };
        assert!(find_file(&BTreeMap::from([(PAGE, file)]), "chat").is_some());
        for (accepted, coding, takes) in [
            ("gzip, br", "br", true),
            ("gzip;q=0.5", "gzip", true),
            ("br;q=0, gzip", "br", false),
            ("identity", "br", false),
            ("brx", "br", false),
        ] {
            assert_eq!(accepts_coding(&asking(accepted), coding), takes, "{accepted}");
        }
    }
}
