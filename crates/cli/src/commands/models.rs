//! `embeddings models`: stronger models for search by meaning.

use amplifier_session_storage::{
    Error,
    embedding::models::{
        Hub, InstalledModel, InstalledModels, KNOWN, KnownModel, ModelVerification, Problem,
    },
};
use serde::Serialize;

use crate::{
    app::App,
    args::{InstallModelArgs, ModelsAction, ModelsArgs, VerifyModelArgs},
    failure::{Failure, Outcome, say},
    paint::Paint,
    progress::Bar,
    render::{
        table::{Column, TableCell, table},
        text::{counted, one_line, size},
    },
};

/// A terminal with this many columns has room for all columns.
const ROOMY: usize = 100;

/// All models as JSON.
#[derive(Serialize)]
struct ListView {
    folder: String,
    models: Vec<ModelView>,
}

/// A model as JSON.
#[derive(Serialize)]
struct ModelView {
    name: String,
    state: &'static str,
    dimensions: Option<usize>,
    bytes: u64,
    source: Option<String>,
    licence: Option<&'static str>,
    folder: Option<String>,
    #[serde(skip)]
    about: String,
}

/// The result of `verify` as JSON.
#[derive(Serialize)]
struct VerifyView {
    models: Vec<VerifiedView>,
}

/// The result for one model as JSON.
#[derive(Serialize)]
struct VerifiedView {
    name: String,
    files: usize,
    problems: Vec<Problem>,
}

impl From<InstalledModel> for ModelView {
    fn from(model: InstalledModel) -> Self {
        let about = match (&model.source, model.dimensions) {
            (_, None) => "can't be read".to_owned(),
            (None, _) => "copied by hand".to_owned(),
            (Some(source), _) => format!("from {}", one_line(source)),
        };
        Self {
            state: "installed",
            dimensions: model.dimensions,
            bytes: model.bytes,
            source: model.source,
            licence: KnownModel::find(&model.name).map(|known| known.licence),
            folder: Some(model.folder.display().to_string()),
            name: model.name,
            about,
        }
    }
}

impl From<&KnownModel> for ModelView {
    fn from(known: &KnownModel) -> Self {
        Self {
            name: known.name.to_owned(),
            state: "available",
            dimensions: Some(known.dimensions),
            bytes: known.bytes,
            source: Some(format!("{}@{}", known.repository, known.revision)),
            licence: Some(known.licence),
            folder: None,
            about: format!("{} ({})", known.about, known.licence),
        }
    }
}

pub(super) async fn run(app: &mut App, args: ModelsArgs) -> Result<Outcome, Failure> {
    let unknown = || Failure::failed("the folder for models is unknown", "set XDG_DATA_HOME or HOME");
    let models = app.config.models().ok_or_else(unknown)?;
    match args.action {
        None | Some(ModelsAction::List) => list(app, &models),
        Some(ModelsAction::Install(args)) => install(app, &models, &args).await,
        Some(ModelsAction::Verify(args)) => verify(app, &models, &args),
    }
}

fn list(app: &mut App, models: &InstalledModels) -> Result<Outcome, Failure> {
    let mut views: Vec<ModelView> = models.list()?.into_iter().map(ModelView::from).collect();
    let available =
        |known: &&KnownModel| !views.iter().any(|view| known.name.eq_ignore_ascii_case(&view.name));
    let available: Vec<ModelView> = KNOWN.iter().filter(available).map(ModelView::from).collect();
    views.extend(available);
    if app.out.is_json() {
        app.out.json(&ListView { folder: models.folder().display().to_string(), models: views })?;
        return Ok(Outcome::Done);
    }
    show(app, &views)?;
    Ok(Outcome::Done)
}

fn show(app: &mut App, views: &[ModelView]) -> Result<(), Failure> {
    let dimensions = |view: &ModelView| view.dimensions.map(|found| found.to_string()).unwrap_or_default();
    if !app.out.is_terminal() {
        for view in views {
            let source = one_line(view.source.as_deref().unwrap_or_default());
            let fields =
                [view.name.as_str(), view.state, &dimensions(view), &view.bytes.to_string(), &source];
            app.out.line(fields.join("\t").trim_end_matches('\t'))?;
        }
        return Ok(());
    }
    let columns = [
        Column::text("model"),
        Column::text("state"),
        Column::number("dimensions"),
        Column::number("size"),
        Column::text("about").shrinking(1, 12),
    ];
    // On a narrow terminal, the description is more useful than the dimensions.
    let has_room = app.out.width >= ROOMY;
    let row = |view: &ModelView| {
        vec![
            TableCell::styled(view.name.clone(), Paint::title),
            TableCell::plain(view.state),
            TableCell::plain(if has_room { dimensions(view) } else { String::new() }),
            TableCell::plain(size(view.bytes)),
            TableCell::styled(view.about.clone(), Paint::aside),
        ]
    };
    let rows: Vec<_> = views.iter().map(row).collect();
    app.out.lines(&table(&columns, &rows, app.out.width, app.out.paint))?;
    Ok(())
}

async fn install(
    app: &mut App,
    models: &InstalledModels,
    args: &InstallModelArgs,
) -> Result<Outcome, Failure> {
    if !cfg!(feature = "local-transformer") {
        let hint = "build with `--features local-transformer` (docs/local-models.md)";
        return Err(Failure::wrong_use("this build supports only the compiled-in model", hint));
    }
    let name = args.name.as_deref();
    let installed = match (&args.from, name) {
        (Some(folder), name) => models.install_from(folder, name)?,
        (None, Some(name)) => download(app, models, name).await?,
        (None, None) => {
            return Err(Failure::wrong_use("no model is named", "pass its name, or its folder with --from"));
        }
    };
    let name = installed.name.clone();
    if app.out.is_json() {
        app.out.json(&ModelView::from(installed))?;
    } else {
        app.out.line(&one_line(&format!("{name} is installed, {}", size(installed.bytes))))?;
    }
    app.out.finish()?;
    say("hint", &format!("use it with --embedding local:{name}"));
    Ok(Outcome::Done)
}

async fn download(app: &App, models: &InstalledModels, name: &str) -> Result<InstalledModel, Failure> {
    let hub = app.environment.variable("HF_ENDPOINT").filter(|endpoint| !endpoint.is_empty());
    let hub = hub.map_or_else(Hub::default, Hub::at);
    let total = KnownModel::find(name).map_or(0, |known| known.bytes);
    let bar = Bar::new(total, "{wide_bar} {bytes}/{total_bytes}, {eta} left");
    let installed = models.install(name, &hub, &|bytes| bar.add(bytes)).await;
    installed.map_err(|error| download_failure(app, error))
}

/// The failure of a download: a missing network is more likely than a problem that a retry solves.
fn download_failure(app: &App, error: Error) -> Failure {
    if !error.is_retryable() {
        return error.into();
    }
    let hint = format!(
        "without network access, copy the model's folder to this machine and run `{} embeddings models install --from DIR`",
        app.program()
    );
    Failure::failed(error.to_string(), hint)
}

fn verify(app: &mut App, models: &InstalledModels, args: &VerifyModelArgs) -> Result<Outcome, Failure> {
    let names = match &args.name {
        Some(name) => vec![name.clone()],
        None => models.list()?.into_iter().map(|model| model.name).collect(),
    };
    let verified = names.iter().map(|name| models.verify(name)).collect::<Result<Vec<_>, _>>()?;
    let found = Outcome::found(!verified.is_empty());
    let broken: Vec<String> =
        verified.iter().filter(|model| !model.problems.is_empty()).map(|model| model.name.clone()).collect();
    print_verified(app, verified)?;
    app.out.finish()?;
    if let [first, ..] = broken.as_slice() {
        let folder = models.folder().join(first);
        let message = match broken.len() {
            1 => "1 model differs from what was installed".to_owned(),
            more => format!("{} differ from what was installed", counted(more as u64, "model")),
        };
        return Err(Failure::failed(message, format!("remove {} and install it again", folder.display())));
    }
    if found == Outcome::FoundNothing {
        say("note", "no model is installed");
    }
    Ok(found)
}

fn print_verified(app: &mut App, verified: Vec<ModelVerification>) -> Result<(), Failure> {
    if app.out.is_json() {
        let view = |ModelVerification { name, files, problems, .. }| VerifiedView { name, files, problems };
        app.out.json(&VerifyView { models: verified.into_iter().map(view).collect() })?;
        return Ok(());
    }
    let rows: Vec<[String; 3]> = verified.into_iter().flat_map(rows_of).collect();
    if !app.out.is_terminal() {
        rows.iter().try_for_each(|row| app.out.line(&row.join("\t")))?;
        return Ok(());
    }
    let columns = [Column::text("model"), Column::text("file"), Column::text("state")];
    let rows: Vec<Vec<TableCell>> = rows.into_iter().map(|row| row.map(TableCell::plain).to_vec()).collect();
    app.out.lines(&table(&columns, &rows, app.out.width, app.out.paint))?;
    Ok(())
}

/// A row for each problem, or one row if there is none.
fn rows_of(model: ModelVerification) -> Vec<[String; 3]> {
    let ModelVerification { name, files, problems, .. } = model;
    if problems.is_empty() {
        return vec![[name, counted(files as u64, "file"), "as installed".to_owned()]];
    }
    problems.into_iter().map(|problem| [name.clone(), one_line(&problem.file), problem.what]).collect()
}
