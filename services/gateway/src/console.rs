//! The console, at `/console/`: the files of `services/console`, embedded when the gateway is built. They are the same for
//! everybody and say nothing of anybody; what they show they ask of the endpoints, with the key of whoever looks.

use std::{collections::BTreeMap, sync::LazyLock};

use axum::{
    Router,
    extract::Path,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    middleware,
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use include_dir::{Dir, include_dir};

use crate::{http::etag, problem::Problem};

/// Where the console is.
pub const PATH: &str = "/console/";

static BUILT: Dir<'_> = include_dir!("$KAIRO_CONSOLE");
static FILES: LazyLock<BTreeMap<&str, File>> = LazyLock::new(|| files(&BUILT));

/// What is shown at every path that is one of the console's screens.
const PAGE: &str = "index.html";
/// Their names say what is in them, so they never change.
const HASHED: &str = "assets/";

/// Nothing but what comes from here, no frames around it, and no text that becomes code: texts are made elements only by the
/// framework's own templates.
const POLICY: &str = "default-src 'self'; img-src 'self' blob:; media-src 'self' blob:; object-src 'none'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types svelte-trusted-html";
const HEAD: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// One of the files, as it is and compressed.
struct File {
    content_type: &'static str,
    plain: Content,
    brotli: Option<Content>,
    gzip: Option<Content>,
}

struct Content {
    bytes: &'static [u8],
    tag: HeaderValue,
}

impl Content {
    fn of(bytes: &'static [u8]) -> Self {
        Self { bytes, tag: etag::strong(bytes) }
    }
}

pub fn routes() -> Router {
    Router::new()
        .route("/console", get(|| async { Redirect::permanent(PATH) }))
        .route(PATH, get(|headers: HeaderMap| async move { answer(PAGE, &headers) }))
        .route(
            "/console/{*path}",
            get(|Path(path): Path<String>, headers: HeaderMap| async move { answer(&path, &headers) }),
        )
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .layer(middleware::from_fn(etag::check))
}

fn answer(path: &str, headers: &HeaderMap) -> Response {
    let Some((file, is_page)) = find(&FILES, path) else { return Problem::unknown_path().into_response() };
    let accepted = |coding| accepts(headers, coding);
    let coded = [("br", &file.brotli), ("gzip", &file.gzip)];
    let found =
        coded.into_iter().find_map(|(coding, content)| Some((coding, content.as_ref()?)).filter(|_| accepted(coding)));
    let (coding, content) = found.map_or((None, &file.plain), |(coding, content)| (Some(coding), content));
    let mut response = (StatusCode::OK, content.bytes).into_response();
    let head = response.headers_mut();
    for (name, value) in HEAD {
        head.insert(name, HeaderValue::from_static(value));
    }
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

/// The file at a path, and whether it is the page that finds out by itself what to show there: a path whose last part has no
/// extension is one of its screens.
fn find<'a>(files: &'a BTreeMap<&str, File>, path: &str) -> Option<(&'a File, bool)> {
    if let Some(file) = files.get(path) {
        return Some((file, path == PAGE));
    }
    let last = path.rsplit('/').next().unwrap_or_default();
    let is_screen = !path.starts_with(HASHED) && !last.contains('.');
    files.get(PAGE).filter(|_| is_screen).map(|page| (page, true))
}

/// Whether a client takes a coding (RFC 9110, 12.5.3), where it names it.
fn accepts(headers: &HeaderMap, coding: &str) -> bool {
    let lists = headers.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|item| {
        let (name, weight) = item.split_once(';').unwrap_or((item, ""));
        let weight = weight.trim().trim_start_matches("q=");
        name.trim().eq_ignore_ascii_case(coding) && !matches!(weight, "0" | "0." | "0.0" | "0.00" | "0.000")
    })
}

/// The files, by their paths; those that are another one compressed are part of that.
fn files(built: &'static Dir<'static>) -> BTreeMap<&'static str, File> {
    let mut contents = BTreeMap::new();
    gather(built, &mut contents);
    let compressed = |path: &str, ending| contents.get(format!("{path}.{ending}").as_str()).copied().map(Content::of);
    let plain = contents.iter().filter(|(path, _)| !path.ends_with(".br") && !path.ends_with(".gz"));
    let file = |(path, bytes): (&&'static str, &&'static [u8])| {
        let (brotli, gzip) = (compressed(path, "br"), compressed(path, "gz"));
        (*path, File { content_type: content_type(path), plain: Content::of(bytes), brotli, gzip })
    };
    plain.map(file).collect()
}

fn gather(dir: &'static Dir<'static>, found: &mut BTreeMap<&'static str, &'static [u8]>) {
    found.extend(dir.files().filter_map(|file| Some((file.path().to_str()?, file.contents()))));
    dir.dirs().for_each(|dir| gather(dir, found));
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
            let response = answer(path, &HeaderMap::new());
            let text = |name: HeaderName| response.headers()[name].to_str().unwrap().to_owned();
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            assert_eq!(text(header::CONTENT_TYPE), "text/html; charset=utf-8", "{path}");
            assert_eq!(text(header::CACHE_CONTROL), "no-cache", "{path}");
            assert!(text(header::CONTENT_SECURITY_POLICY).starts_with("default-src 'self';"), "{path}");
        }
        for path in ["assets/x", "assets/x.js", "x.html", "../Cargo.toml", "a/b.js"] {
            assert_eq!(answer(path, &HeaderMap::new()).status(), StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[test]
    fn what_is_compressed_is_sent_to_those_who_take_it() {
        let page = Content::of(b"page");
        let file = File { content_type: "text/html", plain: page, brotli: Some(Content::of(b"br")), gzip: None };
        assert!(find(&BTreeMap::from([(PAGE, file)]), "chat").is_some());
        for (accepted, coding, takes) in [
            ("gzip, br", "br", true),
            ("gzip;q=0.5", "gzip", true),
            ("br;q=0, gzip", "br", false),
            ("identity", "br", false),
            ("brx", "br", false),
        ] {
            assert_eq!(accepts(&asking(accepted), coding), takes, "{accepted}");
        }
    }
}
