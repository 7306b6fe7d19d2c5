// Stands for react-style-singleton, which writes style elements that the page's Content-Security-Policy forbids. Dialogs
// use it only to keep the page behind them from scrolling, and this page does not scroll.
export const styleSingleton = () => () => null;
